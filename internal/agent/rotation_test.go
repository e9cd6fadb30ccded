// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"

	"github.com/statusstore/statusstore/internal/fakeapi"
)

// guardedAPI is an API server behind TLS that lets in who has the present secret.
type guardedAPI struct {
	*fakeapi.Server
	url, ca string
	// want is the client certificate's common name.
	want    atomic.Value
	refused atomic.Int64
}

func (g *guardedAPI) admits(r *http.Request) bool {
	certs := r.TLS.PeerCertificates
	return len(certs) > 0 && certs[0].Subject.CommonName == g.want.Load().(string)
}

func newGuardedAPI(t *testing.T, secret string) *guardedAPI {
	t.Helper()
	api, err := fakeapi.New(fakeapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := &guardedAPI{Server: api}
	g.want.Store(secret)
	inner := api.Handler()
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.admits(r) {
			g.refused.Add(1)
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`, http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	front.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	front.StartTLS()
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
		if err := api.Close(); err != nil {
			t.Error(err)
		}
	})
	g.url = front.URL
	g.ca = filepath.Join(t.TempDir(), "ca.pem")
	write(t, g.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}))
	return g
}

func (g *guardedAPI) kubeconfig(t *testing.T, user *clientcmdapi.AuthInfo) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: g.url, CertificateAuthority: g.ca} // none: the system's
	config.AuthInfos["u"] = user
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// replace changes a file as rotation does: by a rename.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	write(t, path+".new", data)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// newClientCert returns a self-signed certificate with its key.
func newClientCert(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

// sent says whether the server has the message of pod 0.
func (g *guardedAPI) sent(text string) func() bool {
	return func() bool {
		pod, ok := g.Pod("default", "web-0")
		return ok && pod.Status.Message == text
	}
}

// roundTrip answers requests without a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestRotation_Token: a token that is in a file is read again within a minute, as
// the kubelet renews those of pods long before they end.
func TestRotation_Token(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	write(t, token, []byte("secret-one"))
	g := &guardedAPI{url: "https://server.example"}
	path := g.kubeconfig(t, &clientcmdapi.AuthInfo{TokenFile: token})
	synctest.Test(t, func(t *testing.T) {
		config, err := restConfig(path)
		if err != nil {
			t.Fatal(err)
		}
		var sent []string
		config.Wrap(func(http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				sent = append(sent, r.Header.Get("Authorization"))
				body := `{"kind":"PodList","apiVersion":"v1"}`
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			})
		})
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		list := func() {
			t.Helper()
			if _, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		list()
		replace(t, token, []byte("secret-two"))
		time.Sleep(time.Minute)
		list()
		if want := []string{"Bearer secret-one", "Bearer secret-two"}; !slices.Equal(sent, want) {
			t.Errorf("got %q, want %q", sent, want)
		}
	})
}

// TestRotation_Certificate does the same with a client certificate. client-go looks
// for a new one every five minutes, and closes the connections with the old one; a
// test may make it look more often.
func TestRotation_Certificate(t *testing.T) {
	old := transport.CertCallbackRefreshDuration
	transport.CertCallbackRefreshDuration = 200 * time.Millisecond
	defer func() { transport.CertCallbackRefreshDuration = old }()
	g := newGuardedAPI(t, "node-one")
	if _, err := g.Put(newPod(0)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	cert, key := newClientCert(t, "node-one")
	write(t, certFile, cert)
	write(t, keyFile, key)
	c := configFor(shortDir(t))
	c.PassInterval = 100 * time.Millisecond
	c.Kubeconfig = g.kubeconfig(t, &clientcmdapi.AuthInfo{ClientCertificate: certFile, ClientKey: keyFile})
	r := start(t, c)
	r.set(newPod(0, message("with the first certificate")))
	eventually(t, 10*time.Second, g.sent("with the first certificate"))

	g.want.Store("node-two")
	r.set(newPod(0, message("with the second certificate")))
	eventually(t, 10*time.Second, func() bool { return g.refused.Load() > 0 })
	cert, key = newClientCert(t, "node-two")
	replace(t, keyFile, key)
	replace(t, certFile, cert)
	eventually(t, 20*time.Second, g.sent("with the second certificate"))
	eventually(t, 10*time.Second, func() bool { return r.status().Pending == 0 })
	r.stop()
	if strings.Contains(r.log.String(), "PRIVATE KEY") || strings.Contains(r.log.String(), "BEGIN CERT") {
		t.Error("the log has secrets")
	}
}
