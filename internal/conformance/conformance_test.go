// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"os"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/statusstore/statusstore/internal/fakeapi"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

func TestFakeAPI(t *testing.T) {
	Run(t, func(t *testing.T) Target {
		server, err := fakeapi.Listen(fakeapi.Options{})
		if err != nil {
			t.Fatalf("listen: %v", err)
		}
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return Target{Config: server.RESTConfig(), Node: "node-1", ForgetEvents: server.ForgetEvents}
	})
}

func TestRealServer(t *testing.T) {
	path := os.Getenv("STATUSSTORE_KUBECONFIG")
	if path == "" {
		t.Skip("STATUSSTORE_KUBECONFIG names no cluster")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	target := Target{Config: config, Node: "conformance-" + rand.String(6)}
	Run(t, func(*testing.T) Target { return target })
}
