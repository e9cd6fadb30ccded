// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

const (
	nodeName  = "soak-node"
	namespace = "default"
)

// slot is a place on the node. One pod after the other runs in it, with statuses
// as a kubelet writes them.
type slot struct {
	number     int
	generation int
	pod        *v1.Pod
	started    metav1.Time
	count      int // statuses of this pod so far
	images     []string
	restarts   []int32
	rng        *rand.Rand

	// What was accepted last.
	newest  string // the status' message, which no other status has
	version journal.Version
}

func newSlot(number int) *slot {
	s := &slot{number: number, rng: rand.New(rand.NewPCG(42, uint64(number)))}
	s.renew()
	return s
}

// renew puts a new pod into the slot.
func (s *slot) renew() {
	s.generation++
	s.count, s.newest, s.version = 0, "", 0
	s.started = metav1.NewTime(time.Now())
	s.images, s.restarts = nil, nil
	var containers []v1.Container
	for i := range 2 + s.number%2 {
		name := []string{"app", "sidecar", "metrics"}[i]
		containers = append(containers, v1.Container{Name: name, Image: fmt.Sprintf("registry.example/team-%d/%s:1.%d", s.number%17, name, s.generation)})
		s.images = append(s.images, s.hex())
		s.restarts = append(s.restarts, 0)
	}
	s.pod = &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprintf("pod-%d-%d", s.number, s.generation),
			UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", s.number, s.generation)), CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second)),
			Labels: map[string]string{"app": fmt.Sprintf("team-%d", s.number%17)},
		},
		Spec: v1.PodSpec{NodeName: nodeName, RestartPolicy: v1.RestartPolicyAlways, Containers: containers},
	}
}

func (s *slot) hex() string {
	return fmt.Sprintf("%016x%016x%016x%016x", s.rng.Uint64(), s.rng.Uint64(), s.rng.Uint64(), s.rng.Uint64())
}

// next is the next status of a pod that runs: now and then a container crashes,
// waits and comes back.
func (s *slot) next() v1.PodStatus {
	s.count++
	status := v1.PodStatus{
		Phase: v1.PodRunning, Message: fmt.Sprintf("%s status %d", s.pod.Name, s.count), QOSClass: v1.PodQOSBurstable,
		HostIP: "10.0.0.7", HostIPs: []v1.HostIP{{IP: "10.0.0.7"}}, StartTime: &s.started,
	}
	status.PodIP = fmt.Sprintf("10.1.%d.%d", s.number/250, s.number%250+1)
	status.PodIPs = []v1.PodIP{{IP: status.PodIP}}
	var unready []string
	for i, c := range s.pod.Spec.Containers {
		cs := v1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: strings.SplitN(c.Image, ":", 2)[0] + "@sha256:" + s.images[i], ContainerID: "containerd://" + s.hex(),
			Ready: true, Started: new(true), State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now())}},
		}
		switch n := s.rng.IntN(20); {
		case n == 0:
			s.restarts[i]++
			cs.Ready, cs.Started = false, new(false)
			cs.State = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container=" + c.Name + " pod=" + s.pod.Name}}
			cs.LastTerminationState = v1.ContainerState{Terminated: s.terminated(1, cs.ContainerID)}
		case n < 3:
			cs.Ready = false
		}
		cs.RestartCount = s.restarts[i]
		if !cs.Ready {
			unready = append(unready, c.Name)
		}
		status.ContainerStatuses = append(status.ContainerStatuses, cs)
	}
	ready := v1.PodCondition{Status: v1.ConditionTrue}
	if len(unready) > 0 {
		ready = v1.PodCondition{Status: v1.ConditionFalse, Reason: "ContainersNotReady", Message: fmt.Sprintf("containers with unready status: %v", unready)}
	}
	for _, c := range []struct {
		kind v1.PodConditionType
		v1.PodCondition
	}{{v1.PodReadyToStartContainers, v1.PodCondition{Status: v1.ConditionTrue}}, {v1.PodInitialized, v1.PodCondition{Status: v1.ConditionTrue}},
		{v1.PodReady, ready}, {v1.ContainersReady, ready}, {v1.PodScheduled, v1.PodCondition{Status: v1.ConditionTrue}}} {
		c.Type, c.LastTransitionTime = c.kind, metav1.NewTime(time.Now())
		status.Conditions = append(status.Conditions, c.PodCondition)
	}
	return status
}

func (s *slot) terminated(code int32, id string) *v1.ContainerStateTerminated {
	return &v1.ContainerStateTerminated{ExitCode: code, Reason: "Error", StartedAt: s.started, FinishedAt: metav1.NewTime(time.Now()), ContainerID: id}
}

// last is the status of a pod that has ended.
func (s *slot) last() v1.PodStatus {
	status := s.next()
	status.Phase, status.Message = v1.PodFailed, s.pod.Name+" has ended"
	for i := range status.ContainerStatuses {
		cs := &status.ContainerStatuses[i]
		cs.Ready, cs.Started, cs.LastTerminationState = false, new(false), v1.ContainerState{}
		cs.State = v1.ContainerState{Terminated: s.terminated(1, cs.ContainerID)}
	}
	return status
}

// accepted notes what was stored.
func (s *slot) accepted(message string, version journal.Version) {
	s.newest, s.version = message, version
}
