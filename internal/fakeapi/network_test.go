// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/tools/clientcmd"
)

func TestNetwork_DownAndUp(t *testing.T) {
	server := listen(t, Options{})
	checkOutage(t, server)
}

func TestNetwork_DownAndUpInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listenInMemory(t, Options{})
		checkOutage(t, server)
	})
}

func checkOutage(t *testing.T, server *Server) {
	t.Helper()
	pod := put(t, server, newPod("a"))
	pods := client(t, server).CoreV1().Pods(ns)
	url := server.URL()
	for range 3 {
		watch, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: pod.ResourceVersion})
		if err != nil {
			t.Fatalf("watch: %v", err)
		}
		server.NetworkDown()
		for range watch.ResultChan() { // until it is cut
		}
		before := server.Count()
		for range 20 {
			if _, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); !utilnet.IsConnectionRefused(err) {
				t.Fatalf("get while down: %v, want connection refused", err)
			}
		}
		if got := server.Count(); got != before {
			t.Errorf("%d requests arrived while down", got-before)
		}
		if err := server.NetworkUp(); err != nil {
			t.Fatalf("up: %v", err)
		}
		if got := server.URL(); got != url {
			t.Errorf("URL went from %s to %s", url, got)
		}
		if _, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
			t.Fatalf("get after: %v", err)
		}
	}
	server.NetworkDown() // and closes while down
}

func TestNetwork_HoldsPort(t *testing.T) {
	server := listen(t, Options{})
	address := strings.TrimPrefix(server.URL(), "http://")
	server.NetworkDown()
	// Many dials from the range the port is in: none may meet itself.
	for range 2000 {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			t.Fatalf("connected from %s to %s", conn.LocalAddr(), conn.RemoteAddr())
		}
	}
}

func TestNetwork_ConcurrentSwitching(t *testing.T) {
	server := listen(t, Options{})
	put(t, server, newPod("a"))
	pods := client(t, server).CoreV1().Pods(ns)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				server.NetworkDown()
				if err := server.NetworkUp(); err != nil {
					t.Errorf("up: %v", err)
				}
				_, _ = pods.Get(t.Context(), "a", metav1.GetOptions{}) // may or may not come through
			}
		})
	}
	wg.Wait()
	if _, err := pods.Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("get after all: %v", err)
	}
}

func TestServer_CloseTwice(t *testing.T) {
	server := listen(t, Options{})
	for range 2 {
		if err := server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if err := server.NetworkUp(); err != ErrClosed {
		t.Errorf("up after close: %v, want ErrClosed", err)
	}
}

func TestServer_BadOptions(t *testing.T) {
	if _, err := Listen(Options{EventWindow: -1}); err == nil {
		t.Error("no error for a negative window")
	}
	if server, err := Listen(Options{Address: "256.0.0.1:0"}); err == nil || server != nil {
		t.Errorf("server %v, error %v: want only an error", server, err)
	}
}

func TestServer_Handler(t *testing.T) {
	server, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, server, newPod("a"))
	get := func() int {
		recorder := newRecorder()
		server.Handler().ServeHTTP(recorder, newRequest(t, http.MethodGet, "/api/v1/namespaces/default/pods/a"))
		return recorder.Code
	}
	if code := get(); code != http.StatusOK {
		t.Errorf("code is %d, want 200", code)
	}
	if err := server.WriteKubeconfig(filepath.Join(t.TempDir(), "kubeconfig")); err == nil {
		t.Error("kubeconfig of a server without an address")
	}
	if err := server.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if code := get(); code != http.StatusServiceUnavailable {
		t.Errorf("code after close is %d, want 503", code)
	}
}

func TestServer_Kubeconfig(t *testing.T) {
	server := listen(t, Options{})
	put(t, server, newPod("a"))
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(strings.Repeat("old ", 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := server.WriteKubeconfig(path); err != nil {
		t.Fatalf("write: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v (error %v), want 0600", info.Mode(), err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if _, err := clientFor(t, config).CoreV1().Pods(ns).Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("get: %v", err)
	}
}
