// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSemantics61_MessageLimit(t *testing.T) {
	withContainers := func(regular, init, ephemeral int) *v1.Pod {
		p := new(v1.Pod)
		p.Spec.Containers = make([]v1.Container, regular)
		p.Spec.InitContainers = make([]v1.Container, init)
		p.Spec.EphemeralContainers = make([]v1.EphemeralContainer, ephemeral)
		return p
	}
	for _, tc := range []struct {
		name string
		pod  *v1.Pod
		want int
	}{
		{"no containers", withContainers(0, 0, 0), 12288},
		{"one", withContainers(1, 0, 0), 12288},
		{"two, C49", withContainers(2, 0, 0), 6144},
		{"all kinds count", withContainers(2, 2, 1), 2457},
		{"more than bytes", withContainers(12289, 0, 0), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			long := strings.Repeat("x", 1<<20)
			last := terminated("last", 1, message(long)).State
			both := func(c *v1.ContainerStatus) { c.LastTerminationState = *last.DeepCopy() }
			s := newStatus(v1.PodFailed,
				containers(terminated("a", 1, message(long), both)),
				initContainers(terminated("b", 1, message(long), both)),
				ephemerals(terminated("c", 1, message(long), both)))
			got := Normalise(tc.pod, s)
			for _, list := range [][]v1.ContainerStatus{got.ContainerStatuses, got.InitContainerStatuses, got.EphemeralContainerStatuses} {
				for _, state := range []v1.ContainerState{list[0].State, list[0].LastTerminationState} {
					if n := len(state.Terminated.Message); n != tc.want {
						t.Errorf("message of %s has %d bytes, want %d", list[0].Name, n, tc.want)
					}
				}
			}
		})
	}
}

func TestSemantics61_ShortMessagesStay(t *testing.T) {
	exact := strings.Repeat("x", 6144)
	got := Normalise(newPod(), newStatus(v1.PodFailed, containers(terminated("app", 1, message(exact)))))
	check(t, "message", got.ContainerStatuses[0].State.Terminated.Message, exact)
}

func TestSemantics62_WholeSeconds(t *testing.T) {
	odd := metav1.NewTime(time.Date(2026, 3, 4, 12, 0, 0, 987654321, time.UTC))
	want := at(12, 0, 0)
	state := v1.ContainerState{
		Running:    &v1.ContainerStateRunning{StartedAt: odd},
		Terminated: &v1.ContainerStateTerminated{StartedAt: odd, FinishedAt: odd},
	}
	c := v1.ContainerStatus{Name: "app", State: state, LastTerminationState: *state.DeepCopy()}
	s := newStatus(v1.PodRunning, started(odd), containers(*c.DeepCopy()), initContainers(*c.DeepCopy()), ephemerals(*c.DeepCopy()),
		conditions(v1.PodCondition{Type: "example.com/gate", LastProbeTime: odd, LastTransitionTime: odd}))
	s.VolumeHealth = []v1.PodVolumeHealth{{Name: "data", LastTransitionTime: odd}}

	got := Normalise(newPod(), s)
	times := map[string]metav1.Time{
		"start":        *got.StartTime,
		"probe":        got.Conditions[0].LastProbeTime,
		"transition":   got.Conditions[0].LastTransitionTime,
		"volumeHealth": got.VolumeHealth[0].LastTransitionTime,
	}
	for kind, list := range map[string][]v1.ContainerStatus{
		"regular": got.ContainerStatuses, "init": got.InitContainerStatuses, "ephemeral": got.EphemeralContainerStatuses,
	} {
		times[kind+" running"] = list[0].State.Running.StartedAt
		times[kind+" started"] = list[0].State.Terminated.StartedAt
		times[kind+" finished"] = list[0].State.Terminated.FinishedAt
		times[kind+" last running"] = list[0].LastTerminationState.Running.StartedAt
		times[kind+" last started"] = list[0].LastTerminationState.Terminated.StartedAt
		times[kind+" last finished"] = list[0].LastTerminationState.Terminated.FinishedAt
	}
	for what, got := range times {
		if !got.Time.Equal(want.Time) || got.Nanosecond() != 0 {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	check(t, "start of the input", s.StartTime.Nanosecond(), 987654321)
}

func TestSemantics63_CutOnRuneBoundary(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		limit    int
		want     string
	}{
		{"fits", "äö", 4, "äö"},
		{"between runes", "äö", 2, "ä"},
		{"inside a rune", "äö", 3, "ä"},
		{"inside a long rune", "a😀", 4, "a"},
		{"no room", "ä", 1, ""},
		{"nothing", "ä", 0, ""},
		{"invalid byte", "a\xffb", 10, "a\uFFFDb"},
		{"a replacement does not exceed the limit", "a\xffb", 3, "a"},
		{"cut rune at the end of the input", "ab\xc3", 10, "ab\uFFFD"},
		{"all invalid", "\xff\xfe\xff", 3, "\uFFFD"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := cutMessage(tc.in, tc.limit)
			if got != tc.want {
				t.Errorf("cutMessage(%q, %d) = %q, want %q", tc.in, tc.limit, got, tc.want)
			}
			if len(got) > tc.limit || !utf8.ValidString(got) {
				t.Errorf("%q is longer than %d or not valid UTF-8", got, tc.limit)
			}
			if again := cutMessage(got, tc.limit); again != got {
				t.Errorf("cut again = %q, want %q", again, got)
			}
		})
	}
}

func TestSemantics63_InvalidBytesAreReplaced(t *testing.T) {
	const bad, good = "a\xff", "a\uFFFD"
	c := terminated("app", 1, message(bad))
	c.State.Terminated.Reason = bad
	c.LastTerminationState.Waiting = &v1.ContainerStateWaiting{Reason: bad, Message: bad}
	c.AllocatedResourcesStatus = []v1.ResourceStatus{{Name: "x", Resources: []v1.ResourceHealth{{ResourceID: "0", Message: new(bad)}, {ResourceID: "1"}}}}
	s := newStatus(v1.PodFailed, because(bad, bad), containers(c),
		conditions(saying(isTrueSince(v1.PodReady, at(9, 0, 0)), bad, bad)),
		health("data", v1.VolumeHealthCondition{Status: v1.VolumeHealthDegraded, Reason: bad, Message: bad}))

	got := Normalise(newPod(), s)
	app := got.ContainerStatuses[0]
	for what, text := range map[string]string{
		"status reason":        got.Reason,
		"status message":       got.Message,
		"condition reason":     got.Conditions[0].Reason,
		"condition message":    got.Conditions[0].Message,
		"terminated reason":    app.State.Terminated.Reason,
		"terminated message":   app.State.Terminated.Message,
		"waiting reason":       app.LastTerminationState.Waiting.Reason,
		"waiting message":      app.LastTerminationState.Waiting.Message,
		"device health":        *app.AllocatedResourcesStatus[0].Resources[0].Message,
		"volume reason":        got.VolumeHealth[0].HealthConditions[0].Reason,
		"volume message":       got.VolumeHealth[0].HealthConditions[0].Message,
		"input stays as it is": strings.ReplaceAll(s.Message, bad, good),
	} {
		if text != good {
			t.Errorf("%s = %q, want %q", what, text, good)
		}
	}
	check(t, "message of the input", s.Message, bad)
}

func names(list []v1.ContainerStatus) string {
	var out []string
	for _, c := range list {
		out = append(out, c.Name+c.ImageID)
	}
	return strings.Join(out, " ")
}

func TestSemantics64_Order(t *testing.T) {
	id := func(id string) containerOption { return func(c *v1.ContainerStatus) { c.ImageID = id } }
	pod := newPod(inits("first", "second", "third"))
	s := newStatus(v1.PodRunning,
		containers(running("side", id("1")), running("app"), running("side", id("2"))),
		ephemerals(running("z"), running("b"), running("a")),
		initContainers(waiting("zebra"), waiting("third"), waiting("ape"), waiting("first", id("1")), waiting("second"), waiting("first", id("2"))))
	got := Normalise(pod, s)
	check(t, "regular: by name, same names in their order", names(got.ContainerStatuses), "app side1 side2")
	check(t, "ephemeral: by name", names(got.EphemeralContainerStatuses), "a b z")
	check(t, "init: like the spec, unknown ones last in their order", names(got.InitContainerStatuses), "first1 first2 second third zebra ape")
	check(t, "input", names(s.ContainerStatuses), "side1 app side2")
}

// With few elements an unstable sort happens to be stable.
func TestSemantics64_SameNamesKeepTheirOrder(t *testing.T) {
	var list []v1.ContainerStatus
	for i := range 40 {
		list = append(list, v1.ContainerStatus{Name: []string{"b", "a", "ghost"}[i%3], RestartCount: int32(i)})
	}
	got := Normalise(newPod(inits("b", "a")), newStatus(v1.PodRunning, containers(list...), initContainers(list...)))
	for kind, list := range map[string][]v1.ContainerStatus{"regular": got.ContainerStatuses, "init": got.InitContainerStatuses} {
		for i := 1; i < len(list); i++ {
			if list[i-1].Name == list[i].Name && list[i-1].RestartCount > list[i].RestartCount {
				t.Errorf("%s: %s number %d comes before number %d", kind, list[i].Name, list[i-1].RestartCount, list[i].RestartCount)
			}
		}
	}
}

func TestSemantics65_ConditionsAndAddressesKeepTheirOrder(t *testing.T) {
	s := fullStatus()
	s.PodIPs = []v1.PodIP{{IP: "2001:db8::1"}, {IP: "198.51.100.1"}}
	s.HostIPs = []v1.HostIP{{IP: "2001:db8::2"}, {IP: "192.0.2.1"}}
	s.Conditions = append(s.Conditions, cond("example.com/a", v1.ConditionTrue, at(9, 0, 0)), isTrueSince(v1.PodReady, at(9, 0, 0)))
	got := Normalise(newPod(), s)
	check(t, "conditions", got.Conditions, s.Conditions)
	check(t, "pod IPs", got.PodIPs, s.PodIPs)
	check(t, "host IPs", got.HostIPs, s.HostIPs)
}

func TestNormalise_Nil(t *testing.T) {
	check(t, "Normalise(nil)", Normalise(newPod(), nil), new(v1.PodStatus))
}
