// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const gate = v1.PodConditionType("example.com/gate")

func merge(live, desired *v1.PodStatus) MergeResult {
	return MergeLive(Merge{Live: live, Desired: desired, Now: noon})
}

// spell lists conditions as type=status.
func spell(list []v1.PodCondition) string {
	var out []string
	for _, c := range list {
		out = append(out, string(c.Type)+"="+string(c.Status))
	}
	return strings.Join(out, " ")
}

func TestSemantics77_Conditions(t *testing.T) {
	other := v1.PodConditionType("example.com/other")
	live := newStatus(v1.PodRunning, conditions(
		isFalseSince(v1.PodReady, at(9, 0, 0)), isTrueSince(other, at(9, 0, 0)), isTrueSince(v1.PodResizePending, at(9, 0, 0)),
		saying(isTrueSince(gate, at(9, 0, 0)), "Open", "by its owner")))
	desired := newStatus(v1.PodRunning, conditions(
		isTrueSince(v1.PodScheduled, at(8, 0, 0)), isFalseSince(gate, at(8, 0, 0)), isTrueSince(v1.PodReady, at(8, 0, 0))))
	check(t, "conditions", merge(live, desired).Status.Conditions, []v1.PodCondition{
		isTrueSince(other, at(9, 0, 0)), saying(isTrueSince(gate, at(9, 0, 0)), "Open", "by its owner"),
		isTrueSince(v1.PodScheduled, at(8, 0, 0)), isTrueSince(v1.PodReady, at(8, 0, 0)),
	})
}

// C44: conditions of other owners stay.
func TestC44_ConditionsOfOtherOwnersStay(t *testing.T) {
	desired := newStatus(v1.PodRunning, conditions(isTrueSince(v1.PodReady, noonTime), isTrueSince(v1.ContainersReady, noonTime)))
	for _, status := range []v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse} {
		live := newStatus(v1.PodRunning, conditions(isFalseSince(v1.PodReady, at(9, 0, 0)), isFalseSince(v1.ContainersReady, at(9, 0, 0)), cond(gate, status, at(9, 0, 0))))
		check(t, "conditions", spell(merge(live, desired).Status.Conditions), "example.com/gate="+string(status)+" Ready=True ContainersReady=True")
	}
}

func TestMergeLive_DuplicatesAreRepaired(t *testing.T) {
	live := newStatus(v1.PodRunning, conditions(
		isTrueSince(gate, at(9, 0, 0)), isFalseSince(gate, at(9, 0, 0)),
		isTrueSince(v1.DisruptionTarget, at(9, 0, 0)), isFalseSince(v1.DisruptionTarget, at(9, 0, 0)),
		isTrueSince(v1.PodReady, at(9, 0, 0)), isTrueSince(v1.PodReady, at(9, 0, 0))))
	desired := newStatus(v1.PodRunning, conditions(
		isFalseSince(v1.PodReady, at(9, 0, 0)), isTrueSince(v1.PodScheduled, at(9, 0, 0)), isTrueSince(v1.PodReady, at(9, 0, 0))))
	got := merge(live, desired).Status
	// Readers look the first one up; of ours the last one counts.
	check(t, "conditions", spell(got.Conditions), "example.com/gate=True DisruptionTarget=True PodScheduled=True Ready=True")
	if !Equal(Normalise(newPod(), desired), Normalise(newPod(), &v1.PodStatus{Phase: got.Phase, Conditions: got.Conditions[2:]})) {
		t.Error("what is sent does not equal what is stored")
	}
	desired.Conditions = append(desired.Conditions, isTrueSince(v1.DisruptionTarget, noonTime), isFalseSince(v1.DisruptionTarget, noonTime))
	desired.Phase = v1.PodFailed
	got = merge(live, desired).Status
	check(t, "conditions with a shared one of ours", spell(got.Conditions), "example.com/gate=True DisruptionTarget=False PodScheduled=True Ready=False ContainersReady=False")
}

func TestSemantics78_DisruptionTarget(t *testing.T) {
	ours := saying(isTrueSince(v1.DisruptionTarget, at(8, 0, 0)), "TerminationByKubelet", "evicted")
	theirs := func(status v1.ConditionStatus) v1.PodCondition {
		return saying(cond(v1.DisruptionTarget, status, at(9, 0, 0)), "PreemptionByScheduler", "")
	}
	stamped := func(since metav1.Time) v1.PodCondition { c := ours; c.LastTransitionTime = since; return c }
	for _, tc := range []struct {
		name    string
		live    *v1.PodStatus
		desired v1.PodPhase
		mayRun  bool
		want    []v1.PodCondition
	}{
		{"appended", newStatus(v1.PodRunning), v1.PodFailed, false, []v1.PodCondition{stamped(noonTime)}},
		{"replaced, time kept", newStatus(v1.PodRunning, conditions(theirs(v1.ConditionTrue), isTrueSince(gate, at(9, 0, 0)))), v1.PodFailed, false,
			[]v1.PodCondition{stamped(at(9, 0, 0)), isTrueSince(gate, at(9, 0, 0))}},
		{"replaced, status flips", newStatus(v1.PodRunning, conditions(theirs(v1.ConditionFalse))), v1.PodFailed, false, []v1.PodCondition{stamped(noonTime)}},
		{"may run", newStatus(v1.PodRunning, conditions(theirs(v1.ConditionTrue))), v1.PodFailed, true, []v1.PodCondition{theirs(v1.ConditionTrue)}},
		{"may run, none there", newStatus(v1.PodRunning), v1.PodFailed, true, nil},
		{"phase not terminal", newStatus(v1.PodRunning, conditions(theirs(v1.ConditionTrue))), v1.PodRunning, false, []v1.PodCondition{theirs(v1.ConditionTrue)}},
		{"already terminal", newStatus(v1.PodFailed, conditions(theirs(v1.ConditionTrue))), v1.PodFailed, false, []v1.PodCondition{theirs(v1.ConditionTrue)}},
		{"already terminal, none there", newStatus(v1.PodFailed), v1.PodFailed, false, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := MergeLive(Merge{Live: tc.live, Desired: newStatus(tc.desired, conditions(ours)), MayRun: tc.mayRun, Now: noon})
			check(t, "conditions", got.Status.Conditions, tc.want)
		})
	}
	theirOwn := newStatus(v1.PodRunning, conditions(theirs(v1.ConditionTrue)))
	got := merge(theirOwn, newStatus(v1.PodFailed)).Status
	check(t, "we have none", got.Conditions, []v1.PodCondition{theirs(v1.ConditionTrue)})
}

func TestSemantics79_TerminalHold(t *testing.T) {
	live := newStatus(v1.PodRunning, because("Old", "old"))
	desired := newStatus(v1.PodFailed, because("Evicted", "no memory"), containers(terminated("app", 1)))
	for _, static := range []bool{false, true} {
		got := MergeLive(Merge{Live: live, Desired: desired, Static: static, MayRun: true, Now: noon})
		want := newStatus(v1.PodRunning, because("Old", "old"), containers(terminated("app", 1)))
		check(t, "held", got, MergeResult{Status: want, Held: true})
	}
	check(t, "82: released", merge(live, desired).Status.Phase, v1.PodFailed)
	for name, m := range map[string]Merge{
		"live is terminal":     {Live: newStatus(v1.PodFailed), Desired: desired, MayRun: true},
		"desired not terminal": {Live: live, Desired: newStatus(v1.PodRunning), MayRun: true},
		"no container may run": {Live: live, Desired: desired},
	} {
		if got := MergeLive(m); got.Held || got.Status.Phase != m.Desired.Phase || got.Status.Reason != m.Desired.Reason {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// C06: a terminal phase is never Ready.
func TestC06_TerminalPhaseIsNeverReady(t *testing.T) {
	running := newStatus(v1.PodRunning, conditions(isTrueSince(v1.PodReady, at(9, 0, 0)), isTrueSince(v1.ContainersReady, at(9, 0, 0))))
	desired := newStatus(v1.PodFailed, because("Evicted", ""), conditions(
		isTrueSince(v1.PodReady, at(9, 0, 0)), isTrueSince(v1.PodScheduled, at(8, 0, 0)), isTrueSince(v1.ContainersReady, at(9, 0, 0))))
	desired.ObservedGeneration = 3
	no := func(typ v1.PodConditionType, since metav1.Time) v1.PodCondition {
		c := saying(isFalseSince(typ, since), "PodFailed", "")
		c.ObservedGeneration = 3
		return c
	}
	sent := merge(running, desired).Status
	check(t, "conditions", sent.Conditions, []v1.PodCondition{
		no(v1.PodReady, noonTime), isTrueSince(v1.PodScheduled, at(8, 0, 0)), no(v1.ContainersReady, noonTime),
	})

	// The stored status still says ready. That must not give a patch at each pass.
	later := MergeLive(Merge{Live: sent, Desired: desired, Now: noon.Add(time.Hour)}).Status
	check(t, "an hour later", later.Conditions, sent.Conditions)
	pod := newPod(withStatus(sent))
	if NeedsReconcile(pod, desired) {
		t.Error("the sent status is reconciled for ever")
	}

	// False on the server for another reason is not this end.
	unready := newStatus(v1.PodRunning, conditions(saying(isFalseSince(v1.PodReady, at(9, 0, 0)), "ContainersNotReady", "")))
	_, c := FindCondition(merge(unready, desired).Status, v1.PodReady)
	check(t, "time", c.LastTransitionTime, noonTime)
}

func TestSemantics80_ReadinessEnds(t *testing.T) {
	const done, failed = "PodCompleted", "PodFailed"
	no := func(typ v1.PodConditionType, reason string, since metav1.Time) v1.PodCondition {
		return saying(isFalseSince(typ, since), reason, "")
	}
	unready := saying(isFalseSince(v1.ContainersReady, at(9, 0, 0)), "ContainersNotReady", "containers with unready status: [app]")
	up := isTrueSince(v1.PodReady, at(9, 0, 0))
	for _, tc := range []struct {
		name string
		in   []v1.PodCondition
		live v1.PodPhase
		m    Merge
		want []v1.PodCondition
	}{
		{"Succeeded", []v1.PodCondition{up, unready}, v1.PodRunning, Merge{Desired: newStatus(v1.PodSucceeded)},
			[]v1.PodCondition{no(v1.PodReady, done, noonTime), no(v1.ContainersReady, done, at(9, 0, 0))}},
		{"only ContainersReady is True", []v1.PodCondition{isTrueSince(v1.ContainersReady, at(9, 0, 0)), isFalseSince(v1.PodReady, at(9, 30, 0))}, v1.PodRunning, Merge{Desired: newStatus(v1.PodFailed)},
			[]v1.PodCondition{no(v1.ContainersReady, failed, noonTime), no(v1.PodReady, failed, at(9, 30, 0))}},
		{"one is missing", []v1.PodCondition{up}, v1.PodRunning, Merge{Desired: newStatus(v1.PodFailed)},
			[]v1.PodCondition{no(v1.PodReady, failed, noonTime), no(v1.ContainersReady, failed, noonTime)}},
		{"neither is True", []v1.PodCondition{unready}, v1.PodRunning, Merge{Desired: newStatus(v1.PodFailed)}, []v1.PodCondition{unready}},
		{"not terminal", []v1.PodCondition{up}, v1.PodRunning, Merge{Desired: newStatus(v1.PodRunning)}, []v1.PodCondition{up}},
		{"held", []v1.PodCondition{up}, v1.PodRunning, Merge{Desired: newStatus(v1.PodFailed), MayRun: true}, []v1.PodCondition{up}},
		{"80a: the kept phase counts", []v1.PodCondition{up}, v1.PodSucceeded, Merge{Desired: newStatus(v1.PodRunning)},
			[]v1.PodCondition{no(v1.PodReady, done, noonTime), no(v1.ContainersReady, done, noonTime)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.m.Live, tc.m.Desired.Conditions, tc.m.Now = newStatus(tc.live), tc.in, noon
			check(t, "conditions", MergeLive(tc.m).Status.Conditions, tc.want)
		})
	}
}

func TestSemantics80a_TerminalPhaseOnTheServerStays(t *testing.T) {
	live := newStatus(v1.PodSucceeded, because("Done", "all done"), conditions())
	for _, phase := range []v1.PodPhase{v1.PodFailed, v1.PodRunning, v1.PodPending, ""} {
		for _, mayRun := range []bool{false, true} {
			got := MergeLive(Merge{Live: live, Desired: newStatus(phase, because("Mine", "mine")), MayRun: mayRun, Now: noon})
			want := newStatus(v1.PodSucceeded, because("Done", "all done"))
			check(t, string(phase), got, MergeResult{Status: want, Kept: []string{"phase"}})
		}
		static := MergeLive(Merge{Live: live, Desired: newStatus(phase), Static: true, Now: noon})
		if static.Status.Phase != phase || static.Kept != nil {
			t.Errorf("static, %q: %+v", phase, static)
		}
	}
	detail := merge(live, newStatus(v1.PodSucceeded, because("Done", "more detail")))
	if detail.Status.Message != "more detail" || detail.Kept != nil {
		t.Errorf("the same phase with a new message: %+v", detail)
	}
}

// What the server would refuse for a container that ended is not sent: it would
// refuse the whole status, at each try.
func TestMergeLive_KeepsContainersThatMayNotStartAgain(t *testing.T) {
	pod := newPod(policy(v1.RestartPolicyNever))
	live := newStatus(v1.PodRunning, containers(terminated("app", 3), running("side")))
	anew := newStatus(v1.PodRunning, containers(running("app"), terminated("side", 0)))
	got := MergeLive(Merge{Pod: pod, Live: live, Desired: anew, Now: noon})
	check(t, "status", got.Status, newStatus(v1.PodRunning, containers(terminated("app", 3), terminated("side", 0))))
	check(t, "kept", got.Kept, []string{"containers"})
	pod.Status = *got.Status
	if NeedsReconcile(pod, anew) {
		t.Error("the result would be sent again")
	}
	for name, m := range map[string]Merge{
		"may start":       {Pod: newPod(policy(v1.RestartPolicyAlways)), Live: live, Desired: anew},
		"no pod":          {Live: live, Desired: anew},
		"still ended":     {Pod: pod, Live: live, Desired: newStatus(v1.PodRunning, containers(terminated("app", 4)))},
		"not there":       {Pod: pod, Live: live, Desired: newStatus(v1.PodRunning, containers(running("side")))},
		"named twice":     {Pod: pod, Live: live, Desired: newStatus(v1.PodRunning, containers(running("app"), running("app")))},
		"not in the spec": {Pod: pod, Live: newStatus(v1.PodRunning, initContainers(running("x"))), Desired: newStatus(v1.PodRunning, initContainers(running("x")))},
	} {
		m.Now = noon
		got := MergeLive(m)
		check(t, name, got, MergeResult{Status: m.Desired})
	}
}

// Semantics 52: the server keeps an observed generation that is taken away.
func TestSemantics52_ObservedGenerationStaysOnTheServer(t *testing.T) {
	for _, tc := range []struct{ live, desired, want int64 }{{3, 0, 3}, {3, 2, 3}, {3, 4, 4}, {0, 1, 1}} {
		live, desired := newStatus(v1.PodRunning), newStatus(v1.PodRunning)
		live.ObservedGeneration, desired.ObservedGeneration = tc.live, tc.desired
		check(t, "generation", merge(live, desired).Status.ObservedGeneration, tc.want)
	}
}

func TestSemantics81_WhoseFieldIsIt(t *testing.T) {
	live := fullStatus()
	live.NominatedNodeName = "node-9"
	live.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: new("gpu-1")}}
	live.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "ext"}
	live.NodeAllocatableResourceClaimStatuses = []v1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "cpu"}}
	desired := newStatus(v1.PodRunning)
	desired.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "mine"}}

	got := merge(live, desired)
	want := newStatus(v1.PodRunning)
	want.QOSClass = live.QOSClass
	want.ObservedGeneration = live.ObservedGeneration
	want.ResourceClaimStatuses = live.ResourceClaimStatuses
	want.ExtendedResourceClaimStatus = live.ExtendedResourceClaimStatus
	want.NodeAllocatableResourceClaimStatuses = live.NodeAllocatableResourceClaimStatuses
	check(t, "status", got.Status, want)

	got.Status.ResourceClaimStatuses[0].Name = "edited"
	*got.Status.ResourceClaimStatuses[0].ResourceClaimName = "edited"
	got.Status.ExtendedResourceClaimStatus.ResourceClaimName = "edited"
	check(t, "live after edits of the result", *live.ResourceClaimStatuses[0].ResourceClaimName+live.ExtendedResourceClaimStatus.ResourceClaimName, "gpu-1ext")

	got = merge(newStatus(v1.PodRunning), desired)
	check(t, "the server has none", got.Status.ResourceClaimStatuses, []v1.PodResourceClaimStatus(nil))
}

func TestSemantics83_QOSClass(t *testing.T) {
	for _, tc := range []struct {
		live, desired, want v1.PodQOSClass
		kept                []string
	}{
		{v1.PodQOSBurstable, v1.PodQOSBurstable, v1.PodQOSBurstable, nil},
		{v1.PodQOSBurstable, v1.PodQOSGuaranteed, v1.PodQOSBurstable, []string{"qosClass"}},
		{v1.PodQOSBurstable, "", v1.PodQOSBurstable, nil},
		{"", v1.PodQOSGuaranteed, v1.PodQOSGuaranteed, nil},
	} {
		live, desired := newStatus(v1.PodRunning), newStatus(v1.PodRunning)
		live.QOSClass, desired.QOSClass = tc.live, tc.desired
		got := merge(live, desired)
		check(t, "class", got.Status.QOSClass, tc.want)
		check(t, "kept", got.Kept, tc.kept)
	}
	live := newStatus(v1.PodFailed)
	live.QOSClass = v1.PodQOSBurstable
	check(t, "both", merge(live, newStatus(v1.PodRunning)).Kept, []string{"phase"})
}

// C34: nothing to say.
func TestC34_OrderIsNoDifference(t *testing.T) {
	desired := fullStatus()
	desired.InitContainerStatuses = []v1.ContainerStatus{terminated("a", 0), terminated("b", 0)}
	desired.EphemeralContainerStatuses = []v1.ContainerStatus{terminated("c", 0), terminated("d", 0)}
	live := desired.DeepCopy()
	live.Conditions = append(live.Conditions, isTrueSince(gate, at(9, 0, 0)))
	for _, list := range [][]v1.ContainerStatus{live.ContainerStatuses, live.InitContainerStatuses, live.EphemeralContainerStatuses} {
		slices.Reverse(list)
	}
	slices.Reverse(live.Conditions)
	got := merge(live, desired).Status
	check(t, "merged", got, live)
	got.ContainerStatuses[0].State.Running.StartedAt = noonTime
	check(t, "live after an edit of the result", live.ContainerStatuses[0].State.Running.StartedAt, at(9, 0, 0))

	for name, change := range map[string]statusOption{
		"restarts":        func(s *v1.PodStatus) { s.ContainerStatuses[0].RestartCount++ },
		"container gone":  func(s *v1.PodStatus) { s.ContainerStatuses = s.ContainerStatuses[1:] },
		"other container": func(s *v1.PodStatus) { s.ContainerStatuses[0].Name = "x" },
	} {
		changed := desired.DeepCopy()
		change(changed)
		check(t, name, merge(live, changed).Status.ContainerStatuses, changed.ContainerStatuses)
	}
	for name, change := range map[string]func(*v1.PodCondition){
		"status":     func(c *v1.PodCondition) { c.Status = v1.ConditionFalse },
		"reason":     func(c *v1.PodCondition) { c.Reason = "x" },
		"message":    func(c *v1.PodCondition) { c.Message = "x" },
		"generation": func(c *v1.PodCondition) { c.ObservedGeneration++ },
		"probed":     func(c *v1.PodCondition) { c.LastProbeTime = noonTime },
		"since":      func(c *v1.PodCondition) { c.LastTransitionTime = noonTime },
	} {
		changed := desired.DeepCopy()
		change(&changed.Conditions[2])
		check(t, name, merge(live, changed).Status.Conditions, append([]v1.PodCondition{isTrueSince(gate, at(9, 0, 0))}, changed.Conditions...))
	}
}

func TestMergeLive_Nil(t *testing.T) {
	want := newStatus("")
	check(t, "nothing", MergeLive(Merge{}), MergeResult{Status: want})
	check(t, "no live status", merge(nil, fullStatus()).Status, fullStatus())
}

func TestSemantics91_NeedsReconcile(t *testing.T) {
	stored := func(opts ...statusOption) *v1.PodStatus {
		s := fullStatus()
		for _, o := range opts {
			o(s)
		}
		return Normalise(newPod(), s)
	}
	odd := func(s *v1.PodStatus) {
		s.StartTime = new(metav1.NewTime(s.StartTime.Add(time.Millisecond)))
		slices.Reverse(s.ContainerStatuses)
		s.Conditions = append(s.Conditions, isTrueSince(gate, noonTime))
		s.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpu"}}
	}
	phase := func(p v1.PodPhase) statusOption { return func(s *v1.PodStatus) { s.Phase = p } }
	class := func(s *v1.PodStatus) { s.QOSClass = v1.PodQOSGuaranteed }
	bare := func(s *v1.PodStatus) { s.Conditions = nil }
	mirror := annotated(AnnotationMirror, "hash")
	for _, tc := range []struct {
		name    string
		pod     *v1.Pod
		live    *v1.PodStatus
		desired *v1.PodStatus
		want    bool
	}{
		{"same", newPod(), fullStatus(), stored(), false},
		{"only what is not compared", newPod(), stored(odd), stored(), false},
		{"empty on the server, C43", newPod(), newStatus(""), stored(), true},
		{"container", newPod(), fullStatus(), stored(func(s *v1.PodStatus) { s.ContainerStatuses[0].RestartCount++ }), true},
		{"condition", newPod(), fullStatus(), stored(func(s *v1.PodStatus) { s.Conditions[2].Status = v1.ConditionFalse }), true},
		{"phase", newPod(), fullStatus(), stored(phase(v1.PodFailed)), true},
		{"80a: terminal on the server", newPod(), stored(phase(v1.PodFailed), bare), stored(bare), false},
		{"80a: not for a mirror", newPod(mirror), stored(phase(v1.PodFailed), bare), stored(bare), true},
		{"80a: not for a static pod", newPod(annotated(AnnotationSource, "file")), stored(phase(v1.PodFailed), bare), stored(bare), true},
		{"83: class", newPod(), fullStatus(), stored(class), false},
		{"83: class and more", newPod(), fullStatus(), stored(class, func(s *v1.PodStatus) { s.Message = "x" }), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.pod.Status = *tc.live
			before := tc.pod.DeepCopy()
			if got := NeedsReconcile(tc.pod, tc.desired); got != tc.want {
				t.Errorf("NeedsReconcile = %v, want %v", got, tc.want)
			}
			check(t, "pod", tc.pod, before)
		})
	}
}

// C28: what is stored is from before the pod ended; it brings no container back.
func TestSemantics80a_ContainersStayEnded(t *testing.T) {
	live, stored := newStatus(v1.PodFailed), newStatus(v1.PodRunning)
	live.ContainerStatuses = []v1.ContainerStatus{terminated("app", 1)}
	stored.ContainerStatuses = []v1.ContainerStatus{running("app")}
	check(t, "stale", merge(live, stored).Status.ContainerStatuses, live.ContainerStatuses)
	stored.Phase = v1.PodSucceeded // not stale: another end
	check(t, "ended otherwise", merge(live, stored).Status.ContainerStatuses, stored.ContainerStatuses)
}
