// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestSync_HundredPods sets the status of all pods of a node through the socket.
// The server then shows what was set, and the agent knows that it does.
func TestSync_HundredPods(t *testing.T) {
	const n = 100
	ns := createNamespace(t, "sync")
	node := "node-" + ns
	pods := createPods(t, ns, node, n)
	a := newAgent(t, node)
	since := markRequests(t)
	a.start(t)

	inParallel(t, n, func(i int) error {
		pods[i] = withStatus(pods[i], running(pods[i], fmt.Sprintf("first of %s", pods[i].Name)))
		version, err := a.client.set(pods[i])
		if err == nil && version != 1 {
			err = fmt.Errorf("%s: got version %d, want 1", pods[i].Name, version)
		}
		return err
	})
	a.waitAcked(t, n)
	assertLive(t, ns, pods)
	if diff := sameStatus(pods[7].Status, a.client.pod(t, pods[7]).Status); diff != "" {
		t.Errorf("%s as the agent shows it (-set +got):\n%s", pods[7].Name, diff)
	}

	got := agentRequests(t, since)
	assertVerbs(t, got, map[string]int{"list": 1, "watch": 1, "patch": n})
	for name, count := range got.verb("patch").names() {
		if count != 1 {
			t.Errorf("%s was patched %d times", name, count)
		}
	}
	a.terminate(t)
	a.verifyJournal(t)
}

// TestSync_ClientGo uses the agent's socket as an API server for client-go.
func TestSync_ClientGo(t *testing.T) {
	ns := createNamespace(t, "clientgo")
	node := "node-" + ns
	pod := createPod(t, newPod(ns, "web", node))
	a := newAgent(t, node)
	a.start(t)

	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: "http://statusstore",
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return a.client.http.Transport.(*http.Transport).DialContext(ctx, "", "")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	local := client.CoreV1().Pods(ns)
	watch, err := local.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	set := withStatus(pod, running(pod, "through client-go"))
	if _, err := local.UpdateStatus(t.Context(), set, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := local.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].UID != pod.UID {
		t.Fatalf("got %d pods, want the one that was set", len(list.Items))
	}
	if diff := sameStatus(set.Status, list.Items[0].Status); diff != "" {
		t.Errorf("listed by the agent (-set +got):\n%s", diff)
	}
	for event := range watch.ResultChan() {
		if got, ok := event.Object.(*v1.Pod); ok && got.Status.Message == "through client-go" {
			break
		}
	}
	a.waitAcked(t, 1)
	assertLive(t, ns, []*v1.Pod{set})
}
