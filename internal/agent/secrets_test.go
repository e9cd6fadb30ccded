// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/internal/httpapi"
)

// planted are secrets, words that occur nowhere else, and what they are.
type planted map[string]string

func (p planted) plant(what string) string {
	secret := "planted" + rand.Text()
	p[secret] = what
	return secret
}

// wantNone looks for the secrets, also as base64.
func (p planted) wantNone(t *testing.T, log string) {
	t.Helper()
	for secret, what := range p {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
			if i := strings.Index(log, form); i >= 0 {
				t.Errorf("the log has the %s: …%.200s", what, log[max(0, i-100):])
			}
		}
	}
}

// carrier is a pod with a secret in each place that users put them.
func (p planted) carrier(i int) *v1.Pod {
	pod := newPod(i, message(p.plant("status message")), withContainer)
	pod.Labels = map[string]string{"l": p.plant("label")}
	pod.Annotations = map[string]string{"a": p.plant("annotation")}
	pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "PASSWORD", Value: p.plant("environment")}}
	pod.Spec.Containers[0].Args = []string{"--password=" + p.plant("argument")}
	pod.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{
		ExitCode: 1, Reason: "Error", Message: p.plant("termination message"),
	}}
	pod.Status.Conditions = []v1.PodCondition{{Type: "example.com/gate", Status: v1.ConditionFalse, Message: p.plant("condition message")}}
	return pod
}

// TestSecrets_NotLogged runs an agent with debug logs through all that goes wrong
// with its credentials and with what it is sent, and finds neither the credentials
// nor what pods contain in the log.
func TestSecrets_NotLogged(t *testing.T) {
	secrets := planted{}
	g := newGuardedAPI(t, "node-one")
	dir := t.TempDir()
	cert, key := newClientCert(t, "node-one")
	certFile, keyFile, tokenFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "token")
	write(t, certFile, cert)
	write(t, keyFile, key)
	write(t, tokenFile, []byte(secrets.plant("token")))
	for line := range strings.Lines(string(key)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
			secrets[line] = "client key"
		}
	}
	stored := secrets.carrier(0)
	if _, err := g.Put(stored); err != nil {
		t.Fatal(err)
	}
	c := configFor(shortDir(t))
	c.PassInterval, c.Profiling = 50*time.Millisecond, true
	c.Kubeconfig = g.kubeconfig(t, &clientcmdapi.AuthInfo{TokenFile: tokenFile, ClientCertificate: certFile, ClientKey: keyFile})
	r := start(t, c)

	// Refused in all ways that there are, one after the other.
	for i, code := range []int{http.StatusUnprocessableEntity, http.StatusForbidden, http.StatusUnauthorized, http.StatusInternalServerError, http.StatusConflict} {
		fault := g.Inject(fakeapi.Fault{Match: fakeapi.Match{Verbs: []fakeapi.Verb{fakeapi.Patch}}, Code: code})
		pod := secrets.carrier(0)
		pod.Labels, pod.Annotations = stored.Labels, stored.Annotations
		pod.Status.Reason = fmt.Sprint("Try", i)
		r.set(pod)
		eventually(t, 10*time.Second, func() bool { return fault.Hits() > 0 })
		fault.Remove()
	}
	g.want.Store("nobody")
	r.set(secrets.carrier(1))
	eventually(t, 10*time.Second, func() bool { return g.refused.Load() > 0 })
	g.want.Store("node-one")
	eventually(t, 20*time.Second, func() bool { return r.status().Pending == 1 }) // the server does not know pod 1

	// What comes over the socket: headers, queries, bodies that are broken at the end,
	// not allowed, or no requests at all.
	for _, request := range []string{
		"PUT %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 200\r\nConnection: close\r\n\r\n{\"metadata\":{\"name\":\"%s\"},\"status\":{\"message\":%s",
		"PUT %s HTTP/1.1\r\nHost: x\r\nCookie: session=%s\r\nContent-Type: %s\r\nContent-Length: 3\r\nX-Other: %s\r\nConnection: close\r\n\r\n{}\n",
		"GET /api/v1/pods?x=%s&watch=1&labelSelector=%s%%20in HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic %s\r\nX-Other: %s\r\nConnection: close\r\n\r\n",
		"PATCH %s HTTP/1.1\r\nHost: x\r\nAuthorization: Basic %s\r\nContent-Type: application/merge-patch+json\r\nContent-Length: 150\r\nConnection: close\r\n\r\n{\"status\":{\"%s\":\"%s\"}}",
		"GET %s HTTP/9.9 %s\r\nHost: %s\r\n%s\r\n\r\n",
	} {
		conn, err := net.Dial("unix", r.socket)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(request, httpapi.PodStatusPath("default", "web-0"), secrets.plant("header or query"), secrets.plant("body or header"), secrets.plant("body"))
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil && resp.StatusCode < 400 {
			t.Errorf("%.30q: got %d", request, resp.StatusCode)
		}
		conn.Close()
	}
	illegal := secrets.carrier(0)
	illegal.Status.Phase = v1.PodPhase(secrets.plant("phase"))
	if code, _, err := r.try(http.MethodPut, httpapi.PodStatusPath("default", "web-0"), illegal); err != nil || code != http.StatusUnprocessableEntity {
		t.Errorf("an illegal status: got %d, %v", code, err)
	}
	// A client that leaves in the middle of an answer.
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET "+httpapi.PathSnapshot+"?"+secrets.plant("query")+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	r.set(newPod(2)) // after all of it
	r.stop()

	log := r.log.String() + clientLog.String()
	if want := "pod is put aside"; !strings.Contains(log, want) {
		t.Errorf("the log lacks %q: nothing went wrong that could have told", want)
	}
	secrets.wantNone(t, log)
}

// TestSecrets_NotInErrors: a kubeconfig that can't be used is refused without what
// is in it.
func TestSecrets_NotInErrors(t *testing.T) {
	secrets := planted{}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		Token: secrets.plant("token"), ClientCertificateData: []byte(secrets.plant("certificate")), ClientKeyData: []byte(secrets.plant("key")),
	}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	bad := []string{path}
	broken := filepath.Join(t.TempDir(), "broken")
	write(t, broken, append(read(t, path), ": : "+secrets.plant("line")+"\n\t-"...))
	bad = append(bad, broken)
	for _, path := range bad {
		c := configFor(shortDir(t))
		c.Kubeconfig = path
		r, err := begin(t, c)
		if err == nil {
			t.Fatalf("%s: the agent runs", path)
		}
		secrets.wantNone(t, err.Error()+r.log.String())
	}
}
