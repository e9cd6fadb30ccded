// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

const (
	appID  = "containerd://c1"
	sideID = "containerd://c2"
)

// store is a manager that can be closed and opened again on its file.
type store struct {
	t testing.TB
	*Manager
	opts Options
}

func open(t testing.TB, change ...func(*Options)) *store {
	t.Helper()
	o := Options{Path: filepath.Join(t.TempDir(), journal.FileName)}
	for _, c := range change {
		c(&o)
	}
	s := &store{t: t, opts: o}
	s.open()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func (s *store) open() {
	s.t.Helper()
	m, err := Open(s.opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Manager = m
}

func (s *store) reopen() {
	s.t.Helper()
	if err := s.Close(); err != nil {
		s.t.Fatal(err)
	}
	s.open()
}

// set stores a status that is accepted as a new version.
func (s *store) set(p *v1.Pod, status v1.PodStatus) Change {
	s.t.Helper()
	c, err := s.SetPodStatus(s.t.Context(), p, status)
	if err != nil {
		s.t.Fatalf("SetPodStatus: %v", err)
	}
	if !c.Changed {
		s.t.Fatalf("SetPodStatus made no version")
	}
	return c
}

func (s *store) stored(uid types.UID) *v1.PodStatus {
	s.t.Helper()
	status, ok := s.GetPodStatus(uid)
	if !ok {
		s.t.Fatalf("no status of %s", uid)
	}
	return status
}

func (s *store) wantVersion(uid types.UID, want journal.Version) {
	s.t.Helper()
	e, ok := s.Entry(uid)
	if !ok {
		s.t.Fatalf("no entry of %s", uid)
	}
	if e.Version != want {
		s.t.Errorf("version of %s is %d, want %d", uid, e.Version, want)
	}
}

// kinds lists the journal's events but for opened ones, as "kind/reason".
func (s *store) kinds() []string {
	s.t.Helper()
	var out []string
	for e, err := range s.Journal().Events(1, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if e.Kind != journal.KindOpened {
			out = append(out, strings.TrimSuffix(fmt.Sprintf("%v/%v", e.Kind, e.Reason), "/"))
		}
	}
	return out
}

func (s *store) wantKinds(want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.kinds(), cmpopts.EquateEmpty()); diff != "" {
		s.t.Errorf("events (-want +got):\n%s", diff)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}

// pod is default/web-0 with UID uid-a and the containers app and side.
func pod(change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "uid-a", Generation: 1},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyAlways,
			Containers:    []v1.Container{{Name: "app", Image: "app:1"}, {Name: "side", Image: "side:1"}},
		},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func never(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever }

func oneContainer(p *v1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }

func deleted(p *v1.Pod) {
	p.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	p.DeletionGracePeriodSeconds = new(int64(30))
}

// number gives the pod the n-th name and UID.
func number(n int) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Name, p.UID = fmt.Sprintf("web-%d", n), types.UID(fmt.Sprintf("uid-%d", n))
	}
}

func withStatus(s v1.PodStatus) func(*v1.Pod) { return func(p *v1.Pod) { p.Status = s } }

func staticPod(p *v1.Pod) {
	p.UID = "source"
	p.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
}

func mirrorPod(uid types.UID) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.UID = uid
		p.Annotations = map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "hash"}
	}
}

type statusOption func(*v1.PodStatus)

func status(phase v1.PodPhase, options ...statusOption) v1.PodStatus {
	s := v1.PodStatus{Phase: phase}
	for _, o := range options {
		o(&s)
	}
	return s
}

// runningReady is the status of the same name in the cases: both containers run
// and all conditions are true.
func runningReady(options ...statusOption) v1.PodStatus {
	return status(v1.PodRunning, append([]statusOption{
		running("app", appID, true), running("side", sideID, true),
		condition(v1.PodScheduled, v1.ConditionTrue), condition(v1.PodInitialized, v1.ConditionTrue),
		condition(v1.ContainersReady, v1.ConditionTrue), condition(v1.PodReady, v1.ConditionTrue),
	}, options...)...)
}

func container(c v1.ContainerStatus) statusOption {
	return func(s *v1.PodStatus) {
		for i := range s.ContainerStatuses {
			if s.ContainerStatuses[i].Name == c.Name {
				s.ContainerStatuses[i] = c
				return
			}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, c)
	}
}

func running(name, id string, ready bool) statusOption {
	return container(v1.ContainerStatus{
		Name: name, ContainerID: id, Ready: ready, Started: new(true),
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{}},
	})
}

func terminated(name string, code int32, reason string) statusOption {
	return container(v1.ContainerStatus{
		Name: name, ContainerID: "containerd://" + name,
		State: v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, Reason: reason}},
	})
}

func waiting(name, reason string) statusOption {
	return container(v1.ContainerStatus{
		Name: name, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}},
	})
}

func condition(t v1.PodConditionType, value v1.ConditionStatus, change ...func(*v1.PodCondition)) statusOption {
	return func(s *v1.PodStatus) {
		c := v1.PodCondition{Type: t, Status: value}
		for _, f := range change {
			f(&c)
		}
		for i := range s.Conditions {
			if s.Conditions[i].Type == t {
				s.Conditions[i] = c
				return
			}
		}
		s.Conditions = append(s.Conditions, c)
	}
}

func message(m string) func(*v1.PodCondition) { return func(c *v1.PodCondition) { c.Message = m } }

func changedAt(at time.Time) func(*v1.PodCondition) {
	return func(c *v1.PodCondition) { c.LastTransitionTime = metav1.NewTime(at) }
}

func reason(r string) statusOption { return func(s *v1.PodStatus) { s.Reason = r } }

func text(m string) statusOption { return func(s *v1.PodStatus) { s.Message = m } }

// conditionOf returns a condition of a status, which must be there.
func conditionOf(t testing.TB, s *v1.PodStatus, typ v1.PodConditionType) v1.PodCondition {
	t.Helper()
	for _, c := range s.Conditions {
		if c.Type == typ {
			return c
		}
	}
	t.Fatalf("no condition %s in %+v", typ, s.Conditions)
	return v1.PodCondition{}
}

// stateOf returns the state of a container of a status, which must be there.
func stateOf(t testing.TB, s *v1.PodStatus, name string) v1.ContainerState {
	t.Helper()
	for _, c := range s.ContainerStatuses {
		if c.Name == name {
			return c.State
		}
	}
	t.Fatalf("no container %s", name)
	return v1.ContainerState{}
}
