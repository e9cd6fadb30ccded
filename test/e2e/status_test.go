// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fullPod has what each field of a status refers to.
func fullPod(namespace, name, node string) *v1.Pod {
	pod := newPod(namespace, name, node)
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), v1.ResourceMemory: resource.MustParse("64Mi")}
	device := v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m"), "example.com/gpu": resource.MustParse("1")}
	mount := []v1.VolumeMount{{Name: "data", MountPath: "/data", ReadOnly: true, RecursiveReadOnly: new(v1.RecursiveReadOnlyIfPossible)}}
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	pod.Spec.InitContainers = []v1.Container{
		{Name: "setup", Image: "registry.example/setup:1", VolumeMounts: mount},
		{Name: "proxy", Image: "registry.example/proxy:1", RestartPolicy: new(v1.ContainerRestartPolicyAlways)},
	}
	pod.Spec.Containers = []v1.Container{
		{Name: "app", Image: "registry.example/app:1", VolumeMounts: mount, Resources: v1.ResourceRequirements{Requests: device, Limits: v1.ResourceList{"example.com/gpu": resource.MustParse("1")}}},
		{Name: "side", Image: "registry.example/side:1", Resources: v1.ResourceRequirements{Requests: requests}},
	}
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "claim", ResourceClaimTemplateName: new("template")}}
	pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	return pod
}

// addEphemeral puts an ephemeral container into a pod on the server.
func addEphemeral(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	pod = pod.DeepCopy()
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug", Image: "registry.example/debug:1"}}}
	pod, err := plane.client.CoreV1().Pods(pod.Namespace).UpdateEphemeralContainers(t.Context(), pod.Name, pod, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// notOfTheNode are fields that a node agent can't set.
var notOfTheNode = map[string]string{
	"NominatedNodeName":                    "the server refuses it on a bound pod",
	"ResourceClaimStatuses":                "of another controller",
	"ExtendedResourceClaimStatus":          "of another controller",
	"NodeAllocatableResourceClaimStatuses": "of another controller",
	"Resize":                               "replaced by conditions",
}

// fullStatus sets every field that a node agent can set.
func fullStatus(pod *v1.Pod) v1.PodStatus {
	later := metav1.NewTime(startTime.Add(90 * time.Second))
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("0.1"), v1.ResourceMemory: resource.MustParse("65536Ki")}
	ended := func(code int32) *v1.ContainerStateTerminated {
		return &v1.ContainerStateTerminated{
			ExitCode: code, Signal: code % 128, Reason: "Error", Message: "ended: größer\n", StartedAt: startTime, FinishedAt: later, ContainerID: "containerd://old",
		}
	}
	container := func(name string) v1.ContainerStatus {
		return v1.ContainerStatus{
			Name: name, RestartCount: 2,
			Image: "registry.example/" + name + ":1", ImageID: "registry.example/" + name + "@sha256:1", ContainerID: "containerd://" + name,
			LastTerminationState: v1.ContainerState{Terminated: ended(137)},
			AllocatedResources:   list,
			Resources:            &v1.ResourceRequirements{Requests: list, Limits: list},
			User:                 &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: 1000, GID: 1000, SupplementalGroups: []int64{1000, 2000}}},
			StopSignal:           new(v1.SIGTERM),
		}
	}
	mounts := []v1.VolumeMountStatus{{Name: "data", MountPath: "/data", ReadOnly: true, RecursiveReadOnly: new(v1.RecursiveReadOnlyEnabled)}}

	setup, proxy, app, side, debug := container("setup"), container("proxy"), container("app"), container("side"), container("debug")
	setup.State.Terminated, setup.Ready, setup.Started, setup.VolumeMounts = ended(0), true, new(false), mounts
	proxy.State.Running, proxy.Ready, proxy.Started = &v1.ContainerStateRunning{StartedAt: startTime}, true, new(true)
	app.State.Running, app.Ready, app.Started, app.VolumeMounts = &v1.ContainerStateRunning{StartedAt: later}, true, new(true), mounts
	app.AllocatedResourcesStatus = []v1.ResourceStatus{{
		Name:      "example.com/gpu",
		Resources: []v1.ResourceHealth{{ResourceID: "gpu-0", Health: v1.ResourceHealthStatusUnhealthy, Message: new("too hot")}},
	}}
	side.State.Waiting, side.Started = &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"}, new(false)
	debug.State.Terminated = ended(1)

	generation := pod.Generation
	condition := func(kind v1.PodConditionType, status v1.ConditionStatus) v1.PodCondition {
		return v1.PodCondition{
			Type: kind, Status: status, Reason: "Reported", Message: "in words: größer",
			LastProbeTime: startTime, LastTransitionTime: startTime, ObservedGeneration: generation,
		}
	}
	return v1.PodStatus{
		ObservedGeneration: generation,
		Phase:              v1.PodRunning,
		Message:            "the pod's message",
		Reason:             "PodReason",
		HostIP:             "192.0.2.1",
		HostIPs:            []v1.HostIP{{IP: "192.0.2.1"}, {IP: "2001:db8::1"}},
		PodIP:              "10.1.2.3",
		PodIPs:             []v1.PodIP{{IP: "10.1.2.3"}, {IP: "2001:db8::2"}},
		StartTime:          &startTime,
		QOSClass:           v1.PodQOSBurstable,
		Conditions: []v1.PodCondition{
			condition(v1.PodReadyToStartContainers, v1.ConditionTrue),
			condition(v1.PodInitialized, v1.ConditionTrue),
			condition(v1.PodReady, v1.ConditionFalse),
			condition(v1.ContainersReady, v1.ConditionFalse),
			condition(v1.PodScheduled, v1.ConditionTrue),
			condition(v1.PodResizePending, v1.ConditionTrue),
			condition(v1.PodResizeInProgress, v1.ConditionTrue),
			condition(v1.AllContainersRestarting, v1.ConditionFalse),
		},
		InitContainerStatuses:      []v1.ContainerStatus{setup, proxy},
		ContainerStatuses:          []v1.ContainerStatus{app, side},
		EphemeralContainerStatuses: []v1.ContainerStatus{debug},
		AllocatedResources:         list,
		Resources:                  &v1.ResourceRequirements{Requests: list},
		VolumeHealth: []v1.PodVolumeHealth{{
			Name: "data", LastTransitionTime: startTime,
			HealthConditions: []v1.VolumeHealthCondition{{Status: v1.VolumeHealthDegraded, Reason: "SlowDisk", Message: "slow"}},
		}},
	}
}

// writeAsController changes a pod's status as a controller does, beside the agent.
func writeAsController(t *testing.T, pod *v1.Pod, patch any) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": patch})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plane.client.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// TestStatus_EveryField sends a status with every field a node can set. One
// PATCH brings it over, and no pass sees a difference after that: not because of
// the form of a time or quantity, nor because of what other controllers wrote.
func TestStatus_EveryField(t *testing.T) {
	usePlane(t, "--feature-gates=CSIVolumeHealth=true") // off by default, for VolumeHealth
	ns := createNamespace(t, "full")
	node := "node-" + ns
	pod := addEphemeral(t, createPod(t, fullPod(ns, "full", node)))
	pod.Status = fullStatus(pod)
	for field, value := range reflect.ValueOf(pod.Status).Fields() {
		if why := notOfTheNode[field.Name]; value.IsZero() && why == "" {
			t.Errorf("the test leaves out PodStatus.%s", field.Name)
		}
	}
	claims := []v1.PodResourceClaimStatus{{Name: "claim", ResourceClaimName: new("claim-of-full")}}
	writeAsController(t, pod, v1.PodStatus{
		ResourceClaimStatuses: claims,
		Conditions:            []v1.PodCondition{{Type: "example.com/gate", Status: v1.ConditionTrue, LastTransitionTime: startTime}},
	})

	a := newAgent(t, node)
	since := markRequests(t)
	a.start(t)
	a.client.mustSet(t, pod)
	a.waitAcked(t, 1)
	want := pod.DeepCopy()
	want.Status.ResourceClaimStatuses = claims
	want.Status.Conditions = append(want.Status.Conditions, v1.PodCondition{Type: "example.com/gate", Status: v1.ConditionTrue})
	assertLive(t, ns, []*v1.Pod{want})

	// Pass after pass nothing is sent, while a controller goes on with its own
	// condition. STATUSSTORE_E2E_PASSES=30 makes it five minutes.
	for pass := range stablePasses(t) {
		gate := v1.PodCondition{Type: "example.com/gate", Status: v1.ConditionTrue, Message: fmt.Sprint("pass ", pass), LastTransitionTime: startTime}
		writeAsController(t, pod, v1.PodStatus{Conditions: []v1.PodCondition{gate}})
		revision := livePod(t, pod).ResourceVersion
		quiet(t, 1)
		live := livePod(t, pod)
		if live.ResourceVersion != revision {
			t.Errorf("pass %d: the pod changed on the server: resourceVersion %s, was %s", pass, live.ResourceVersion, revision)
		}
		if !slices.ContainsFunc(live.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == gate.Type && c.Message == gate.Message }) {
			t.Errorf("pass %d: the controller's condition is gone: %+v", pass, live.Status.Conditions)
		}
	}
	// The server ends a watch after some minutes; resuming it is no news.
	sent := agentRequests(t, since)
	sent = slices.DeleteFunc(sent, func(r request) bool { return r.Verb == "list" || r.Verb == "watch" })
	assertVerbs(t, sent, map[string]int{"patch": 1})

	// The same after a restart: what was journalled is what was sent.
	a.kill(t)
	since = markRequests(t)
	a.start(t)
	a.waitAcked(t, 1)
	quiet(t, 1)
	assertVerbs(t, agentRequests(t, since), map[string]int{"list": 1, "watch": 1})
}

// stablePasses is how many periodic passes must find nothing to send.
func stablePasses(t *testing.T) int {
	t.Helper()
	text := os.Getenv("STATUSSTORE_E2E_PASSES")
	if text == "" {
		return 2
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("STATUSSTORE_E2E_PASSES: %v", err)
	}
	return n
}

// TestStatus_DroppedField sends a field that the server throws away because its
// feature is off there. The rest of the status arrives, and the agent doesn't
// send it over and over.
func TestStatus_DroppedField(t *testing.T) {
	ns := createNamespace(t, "dropped")
	node := "node-" + ns
	pod := fullPod(ns, "web", node)
	pod = createPod(t, pod)
	full := fullStatus(pod)
	full.EphemeralContainerStatuses = nil
	a := newAgent(t, node)
	since := markRequests(t)
	a.start(t)
	a.client.mustSet(t, withStatus(pod, full))
	a.waitAcked(t, 1)
	want := withStatus(pod, full)
	want.Status.VolumeHealth = nil
	assertLive(t, ns, []*v1.Pod{want})
	quiet(t, 2)
	assertVerbs(t, agentRequests(t, since), map[string]int{"list": 1, "watch": 1, "patch": 1})
}

// TestStatus_ForeignCondition leaves the conditions of other controllers alone,
// whether they were there first or come between two of our patches.
func TestStatus_ForeignCondition(t *testing.T) {
	ns := createNamespace(t, "foreign")
	node := "node-" + ns
	pod := createPod(t, newPod(ns, "web", node))
	condition := func(kind v1.PodConditionType) v1.PodCondition {
		return v1.PodCondition{Type: kind, Status: v1.ConditionTrue, Reason: "Theirs", LastTransitionTime: startTime}
	}
	assertTheirs := func(kinds ...v1.PodConditionType) {
		t.Helper()
		live := livePod(t, pod)
		for _, kind := range kinds {
			if !slices.ContainsFunc(live.Status.Conditions, func(c v1.PodCondition) bool {
				return c.Type == kind && c.Status == v1.ConditionTrue && c.Reason == "Theirs"
			}) {
				t.Errorf("condition %s is gone: %+v", kind, live.Status.Conditions)
			}
		}
	}
	writeAsController(t, pod, v1.PodStatus{Conditions: []v1.PodCondition{condition("example.com/first")}})
	a := newAgent(t, node)
	since := markRequests(t)
	a.start(t)
	a.client.mustSet(t, withStatus(pod, running(pod, "one")))
	a.waitAcked(t, 1)
	assertTheirs("example.com/first")

	writeAsController(t, pod, v1.PodStatus{Conditions: []v1.PodCondition{condition("example.com/second")}})
	quiet(t, 1)
	assertVerbs(t, agentRequests(t, since), map[string]int{"list": 1, "watch": 1, "patch": 1})

	next := running(pod, "two")
	next.Conditions = append(next.Conditions, v1.PodCondition{Type: "example.com/first", Status: v1.ConditionFalse, LastTransitionTime: startTime})
	a.client.mustSet(t, withStatus(pod, next))
	a.waitAcked(t, 1)
	assertTheirs("example.com/first", "example.com/second")
	assertVerbs(t, agentRequests(t, since), map[string]int{"list": 1, "watch": 1, "patch": 2})
}

// TestG5_Repair undoes what another writer does to the node's part of a status.
func TestG5_Repair(t *testing.T) {
	ns := createNamespace(t, "repair")
	node := "node-" + ns
	pod := createPod(t, newPod(ns, "web", node))
	a := newAgent(t, node)
	a.start(t)
	set := withStatus(pod, running(pod, "ours"))
	a.client.mustSet(t, set)
	a.waitAcked(t, 1)

	since := markRequests(t)
	writeAsController(t, pod, map[string]any{"message": "theirs", "podIP": nil, "podIPs": nil})
	eventually(t, 30*time.Second, func() error {
		if diff := sameStatus(set.Status, livePod(t, pod).Status); diff != "" {
			return fmt.Errorf("on the server (-set +got):\n%s", diff)
		}
		return nil
	})
	a.waitAcked(t, 1)
	quiet(t, 1)
	assertVerbs(t, agentRequests(t, since), map[string]int{"patch": 1})
}
