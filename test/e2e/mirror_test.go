// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// staticPair returns a static pod as its node knows it, and the mirror pod to
// make on the server.
func staticPair(namespace, name, node string) (static, mirror *v1.Pod) {
	const hash = "0123456789abcdef0123456789abcdef"
	static = newPod(namespace, name, node)
	static.UID = types.UID(hash)
	static.Spec.RestartPolicy = v1.RestartPolicyAlways
	static.Annotations = map[string]string{
		"kubernetes.io/config.source": "file",
		"kubernetes.io/config.hash":   hash,
	}
	mirror = static.DeepCopy()
	mirror.UID = ""
	mirror.Annotations["kubernetes.io/config.mirror"] = hash
	return static, mirror
}

// TestStatic_MirrorPod sets the status of a static pod by its own UID. It lands
// on the mirror pod, and either UID finds it. A mirror pod that is deleted and
// made again gets it too.
func TestStatic_MirrorPod(t *testing.T) {
	ns := createNamespace(t, "static")
	node := "node-" + ns
	static, mirror := staticPair(ns, "etcd-"+node, node)
	a := newAgent(t, node)
	since := markRequests(t)
	a.start(t)

	// No mirror pod yet: the status is kept, and not sent.
	static.Status = running(static, "set before the mirror pod was there")
	a.client.mustSet(t, static)
	if r := a.client.records(t)[static.UID]; r.Version != 1 || r.AckedVersion != 0 {
		t.Errorf("without a mirror pod: got %+v, want version 1, not acked", r)
	}

	mirror = createPod(t, mirror)
	if mirror.UID == static.UID {
		t.Fatal("the mirror pod has the UID of the static pod")
	}
	a.waitAcked(t, 1)
	assertLive(t, ns, []*v1.Pod{withStatus(mirror, static.Status)})

	static.Status = running(static, "set when the mirror pod was there")
	a.client.mustSet(t, static)
	a.waitAcked(t, 1)
	assertLive(t, ns, []*v1.Pod{withStatus(mirror, static.Status)})

	for _, uid := range []types.UID{static.UID, mirror.UID} {
		t.Run("read by "+string(uid), func(t *testing.T) {
			var got struct {
				UID    types.UID
				Events []struct{ Status *v1.PodStatus }
			}
			if _, err := a.client.do(http.MethodGet, "/statusstore/v1/pods/"+string(uid)+"/history", nil, &got); err != nil {
				t.Fatal(err)
			}
			if got.UID != static.UID || len(got.Events) != 2 {
				t.Fatalf("got %d events of %s, want 2 of %s", len(got.Events), got.UID, static.UID)
			}
			if diff := sameStatus(static.Status, *got.Events[1].Status); diff != "" {
				t.Errorf("newest status (-set +got):\n%s", diff)
			}
		})
	}

	// A deleted mirror pod is not the end of the static pod.
	second := mirror.DeepCopy()
	second.UID, second.ResourceVersion, second.Status = "", "", v1.PodStatus{}
	second.CreationTimestamp.Reset()
	if err := plane.client.CoreV1().Pods(ns).Delete(t.Context(), mirror.Name, *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	quiet(t, 1)
	if _, ok := a.client.records(t)[static.UID]; !ok {
		t.Fatal("the static pod was dropped with its mirror pod")
	}
	second = createPod(t, second)
	eventually(t, 30*time.Second, func() error {
		if got := livePod(t, second).Status.Message; got != static.Status.Message {
			return fmt.Errorf("the new mirror pod has the message %q, want %q", got, static.Status.Message)
		}
		return nil
	})
	a.waitAcked(t, 1)
	assertLive(t, ns, []*v1.Pod{withStatus(second, static.Status)})
	assertVerbs(t, agentRequests(t, since), map[string]int{"list": 1, "watch": 1, "patch": 3})
}
