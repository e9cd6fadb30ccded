// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// requestDeletion deletes a pod as a user does: it gets a deletion timestamp.
func requestDeletion(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	if err := plane.client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	live := livePod(t, pod)
	if live.DeletionTimestamp == nil {
		t.Fatalf("%s has no deletion timestamp", pod.Name)
	}
	return live
}

// replacePod removes a pod at once and makes another one of the same name.
func replacePod(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	if err := plane.client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	created := createPod(t, newPod(pod.Namespace, pod.Name, pod.Spec.NodeName))
	if created.UID == pod.UID {
		t.Fatalf("the new %s has the UID of the old one", pod.Name)
	}
	return created
}

// waitGone returns when the server has the pod no more and the agent has dropped it.
func (a *agent) waitGone(t *testing.T, pod *v1.Pod) {
	t.Helper()
	begin := time.Now()
	eventually(t, 30*time.Second, func() error {
		_, err := plane.client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s on the server: got %v, want not found", pod.Name, err)
		}
		if r, ok := a.client.records(t)[pod.UID]; ok {
			return fmt.Errorf("the agent still has %s: %+v", pod.Name, r)
		}
		return nil
	})
	t.Logf("%s is gone after %.1fs", pod.Name, time.Since(begin).Seconds())
}

// TestG6_Finish lets a pod end in the order that an agent follows: the user
// deletes, the containers end, the resources are reclaimed, the object goes.
func TestG6_Finish(t *testing.T) {
	ns := createNamespace(t, "finish")
	node := "node-" + ns
	pod := createPod(t, newPod(ns, "web", node))
	a := newAgent(t, node)
	since := markRequests(t)
	a.start(t)
	a.client.mustSet(t, withStatus(pod, running(pod, "")))
	a.waitAcked(t, 1)

	pod = requestDeletion(t, pod)
	a.client.mustSet(t, withStatus(pod, succeeded(pod)))
	a.waitAcked(t, 1)
	if phase := livePod(t, pod).Status.Phase; phase != v1.PodSucceeded {
		t.Errorf("before finish: got phase %s on the server, want Succeeded", phase)
	}
	a.client.finish(t, pod.UID)
	a.waitGone(t, pod)

	quiet(t, 1)
	assertVerbs(t, agentRequests(t, since), map[string]int{"list": 1, "watch": 1, "patch": 2, "delete": 1})
}

// TestG6_NotBeforeFinished keeps the object of a pod that has ended until its
// resources are reclaimed.
func TestG6_NotBeforeFinished(t *testing.T) {
	ns := createNamespace(t, "unfinished")
	node := "node-" + ns
	pod := createPod(t, newPod(ns, "web", node))
	a := newAgent(t, node)
	since := markRequests(t)
	a.start(t)
	pod = requestDeletion(t, pod)
	a.client.mustSet(t, withStatus(pod, succeeded(pod)))
	a.waitAcked(t, 1)
	quiet(t, 1)
	livePod(t, pod) // fails the test if it is gone
	assertVerbs(t, agentRequests(t, since), map[string]int{"list": 1, "watch": 1, "patch": 1})
}

// restrictedUser makes a user that may do what an agent needs except for
// deletion, and returns a kubeconfig for it and a function that grants that too.
func restrictedUser(t *testing.T, name string) (kubeconfig string, grantDelete func(*testing.T)) {
	t.Helper()
	grant := func(t *testing.T, role string, rules ...rbacv1.PolicyRule) {
		t.Helper()
		meta := metav1.ObjectMeta{Name: name + "-" + role}
		if _, err := plane.client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		}
		if _, err := plane.client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	grant(t, "sync",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}},
	)
	return impersonating(t, name), func(t *testing.T) {
		t.Helper()
		grant(t, "delete", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"delete"}})
	}
}

// TestG6_CrashBeforeDelete kills the agent when the server holds the last status
// and the finished mark is stored, but the DELETE has not gone through.
func TestG6_CrashBeforeDelete(t *testing.T) {
	ns := createNamespace(t, "crashdelete")
	node := "node-" + ns
	pod := createPod(t, newPod(ns, "web", node))
	a := newAgent(t, node)
	var grantDelete func(*testing.T)
	a.kubeconfig, grantDelete = restrictedUser(t, node)
	a.start(t)
	pod = requestDeletion(t, pod)
	since := markRequests(t)
	a.client.mustSet(t, withStatus(pod, succeeded(pod)))
	a.client.finish(t, pod.UID)
	eventually(t, 30*time.Second, func() error {
		refused := agentRequests(t, since).verb("delete")
		if len(refused) == 0 {
			return fmt.Errorf("no DELETE yet:\n%s", sample(agentRequests(t, since)))
		}
		if code := refused[0].ResponseStatus.Code; code != 403 {
			t.Fatalf("got %v, want 403", refused[0])
		}
		return nil
	})
	a.kill(t)
	if phase := livePod(t, pod).Status.Phase; phase != v1.PodSucceeded {
		t.Errorf("got phase %s on the server, want Succeeded", phase)
	}

	grantDelete(t)
	since = markRequests(t)
	a.start(t)
	a.waitGone(t, pod)
	// Authorization may lag behind the grant, so a refusal may come first.
	if got := agentRequests(t, since).served().verbs(); got["delete"] != 1 || got["patch"] != 0 || got["get"] != 0 {
		t.Errorf("requests after the restart: got %v, want one DELETE, no PATCH and no GET", got)
	}
}

// TestG6_CrashBeforePatch kills the agent before the server has heard anything
// of the pod's end.
func TestG6_CrashBeforePatch(t *testing.T) {
	ns := createNamespace(t, "crashpatch")
	node := "node-" + ns
	pod := createPod(t, newPod(ns, "web", node))
	a := newAgent(t, node)
	a.start(t)
	a.client.mustSet(t, withStatus(pod, running(pod, "")))
	a.waitAcked(t, 1)
	pod = requestDeletion(t, pod)
	plane.down(t)
	a.client.mustSet(t, withStatus(pod, succeeded(pod)))
	a.client.finish(t, pod.UID)
	a.kill(t)
	since := markRequests(t)
	plane.up(t)
	a.start(t)
	a.waitGone(t, pod)
	assertVerbs(t, agentRequests(t, since), map[string]int{"list": 1, "watch": 1, "patch": 1, "delete": 1})
}

// TestG6_RecreatedPod replaces pods under their names while the agent is away
// and has a status, or a finished mark, left to send for the old ones.
func TestG6_RecreatedPod(t *testing.T) {
	ns := createNamespace(t, "recreated")
	node := "node-" + ns
	pods := createPods(t, ns, node, 2)
	changed, finished := pods[0], pods[1]
	a := newAgent(t, node)
	a.start(t)
	for _, pod := range pods {
		a.client.mustSet(t, withStatus(pod, running(pod, "")))
	}
	a.waitAcked(t, 2)

	finished = requestDeletion(t, finished)
	plane.down(t)
	a.client.mustSet(t, withStatus(changed, running(changed, "for the old pod only")))
	a.client.mustSet(t, withStatus(finished, succeeded(finished)))
	a.client.finish(t, finished.UID)
	a.kill(t)
	plane.up(t)
	since := markRequests(t)
	replaced := []*v1.Pod{replacePod(t, changed), replacePod(t, finished)}
	a.start(t)
	eventually(t, 30*time.Second, func() error {
		for uid, r := range a.client.records(t) {
			if uid == changed.UID || uid == finished.UID {
				return fmt.Errorf("the agent still has the old pod %+v", r)
			}
		}
		return nil
	})
	quiet(t, 1)
	for _, pod := range replaced {
		live := livePod(t, pod)
		if live.UID != pod.UID || live.ResourceVersion != pod.ResourceVersion {
			t.Errorf("the new %s was touched: resourceVersion %s, was %s; message %q", pod.Name, live.ResourceVersion, pod.ResourceVersion, live.Status.Message)
		}
	}
	assertVerbs(t, agentRequests(t, since), map[string]int{"list": 1, "watch": 1})

	// The new pod has a status of its own.
	next := withStatus(replaced[0], running(replaced[0], "of the new pod"))
	if version := a.client.mustSet(t, next); version != 1 {
		t.Errorf("got version %d for the new pod, want 1", version)
	}
	eventually(t, 30*time.Second, func() error {
		if got := livePod(t, next).Status.Message; got != next.Status.Message {
			return fmt.Errorf("got message %q on the server, want %q", got, next.Status.Message)
		}
		return nil
	})
}

// impersonating writes a kubeconfig that acts as another user.
func impersonating(t *testing.T, user string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(plane.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range config.AuthInfos {
		info.Impersonate = user
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}
