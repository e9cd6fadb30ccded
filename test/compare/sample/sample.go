// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Label marks the pods of one run.
const Label = "statusstore.test/run"

// Shape says how large a pod and its status are.
type Shape struct {
	Name       string
	Containers int
	Inits      int
	Resources  bool // requests and limits of each container, in the status too
	Restarted  bool // the last termination of each container
}

// The shapes, from small to large.
var (
	One   = Shape{Name: "1 container", Containers: 1}
	Two   = Shape{Name: "2 containers", Containers: 2}
	Three = Shape{Name: "3 containers, resources", Containers: 3, Resources: true}
	Large = Shape{Name: "5+2 containers, restarted", Containers: 5, Inits: 2, Resources: true, Restarted: true}
)

// Shapes are all of them.
var Shapes = []Shape{One, Two, Three, Large}

// Pod is the i-th pod of a run. An API server replaces its UID and creation time.
func (s Shape) Pod(run, node string, i int) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         metav1.NamespaceDefault,
			Name:              fmt.Sprintf("%s-%d", run, i),
			Labels:            map[string]string{Label: run},
			UID:               types.UID(digest(run, i)[:36]),
			Generation:        1,
			CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
		},
		Spec: v1.PodSpec{NodeName: node, RestartPolicy: v1.RestartPolicyAlways},
	}
	for c := range s.Containers {
		p.Spec.Containers = append(p.Spec.Containers, s.container(fmt.Sprintf("container-%d", c)))
	}
	for c := range s.Inits {
		p.Spec.InitContainers = append(p.Spec.InitContainers, s.container(fmt.Sprintf("init-%d", c)))
	}
	return p
}

func (s Shape) container(name string) v1.Container {
	c := v1.Container{Name: name, Image: image(name)}
	if s.Resources {
		c.Resources = resources()
	}
	return c
}

func resources() v1.ResourceRequirements {
	list := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	}
	return v1.ResourceRequirements{Requests: list("250m", "256Mi"), Limits: list("1", "512Mi")}
}

func image(name string) string { return "registry.example.com/team/" + name + ":v1.2.3" }

// Status is the status of a running pod after some restarts of its containers. It
// depends on nothing but the arguments.
func (s Shape) Status(p *v1.Pod, restarts int) v1.PodStatus {
	start := p.CreationTimestamp
	status := v1.PodStatus{
		Phase:     v1.PodRunning,
		QOSClass:  v1.PodQOSBestEffort,
		HostIP:    "192.0.2.17",
		HostIPs:   []v1.HostIP{{IP: "192.0.2.17"}},
		PodIP:     "198.51.100.23",
		PodIPs:    []v1.PodIP{{IP: "198.51.100.23"}},
		StartTime: &start,
	}
	if s.Resources {
		status.QOSClass = v1.PodQOSBurstable
	}
	for _, kind := range []v1.PodConditionType{
		v1.PodReadyToStartContainers, v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled,
	} {
		status.Conditions = append(status.Conditions, v1.PodCondition{
			Type: kind, Status: v1.ConditionTrue, LastTransitionTime: start, ObservedGeneration: p.Generation,
		})
	}
	for _, c := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, s.running(p, c.Name, restarts))
	}
	for _, c := range p.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, s.completed(p, c.Name))
	}
	return status
}

func (s Shape) base(p *v1.Pod, name string, restarts int) v1.ContainerStatus {
	c := v1.ContainerStatus{
		Name:         name,
		Image:        image(name),
		ImageID:      "registry.example.com/team/" + name + "@sha256:" + digest(name, 0),
		ContainerID:  containerID(p, name, restarts),
		RestartCount: int32(restarts),
		Ready:        true,
	}
	if s.Resources {
		r := resources()
		c.AllocatedResources, c.Resources = r.Requests, &r
	}
	return c
}

func (s Shape) running(p *v1.Pod, name string, restarts int) v1.ContainerStatus {
	c := s.base(p, name, restarts)
	c.Started = new(true)
	begin := metav1.NewTime(p.CreationTimestamp.Add(time.Duration(restarts) * time.Minute))
	c.State.Running = &v1.ContainerStateRunning{StartedAt: begin}
	if s.Restarted {
		c.LastTerminationState.Terminated = &v1.ContainerStateTerminated{
			ExitCode: 137, Reason: "OOMKilled", StartedAt: p.CreationTimestamp, FinishedAt: begin,
			Message:     "the process used more memory than its limit allows and was ended by the kernel",
			ContainerID: containerID(p, name, restarts+1_000_000),
		}
	}
	return c
}

func (s Shape) completed(p *v1.Pod, name string) v1.ContainerStatus {
	c := s.base(p, name, 0)
	c.Started = new(false)
	c.State.Terminated = &v1.ContainerStateTerminated{
		Reason: "Completed", StartedAt: p.CreationTimestamp, FinishedAt: p.CreationTimestamp, ContainerID: c.ContainerID,
	}
	return c
}

// containerID is as long, and as hard to compress, as a real one.
func containerID(p *v1.Pod, name string, n int) string {
	return "containerd://" + digest(string(p.UID)+name, n)
}

func digest(s string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", s, n))
	return hex.EncodeToString(sum[:])
}
