// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// setDefaults fills in what a real server fills in whenever it reads a pod.
func setDefaults(pod *corev1.Pod) {
	spec := &pod.Spec
	if spec.RestartPolicy == "" {
		spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if spec.DNSPolicy == "" {
		spec.DNSPolicy = corev1.DNSClusterFirst
	}
	if spec.SchedulerName == "" {
		spec.SchedulerName = corev1.DefaultSchedulerName
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = new(true)
	}
	switch grace := spec.TerminationGracePeriodSeconds; {
	case grace == nil:
		spec.TerminationGracePeriodSeconds = new(int64(corev1.DefaultTerminationGracePeriodSeconds))
	case *grace < 0:
		spec.TerminationGracePeriodSeconds = new(int64(1))
	}
	for i := range spec.InitContainers {
		setContainerDefaults(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		setContainerDefaults(&spec.Containers[i])
	}
	setAddressDefaults(&pod.Status)
}

func setContainerDefaults(container *corev1.Container) {
	if container.TerminationMessagePath == "" {
		container.TerminationMessagePath = corev1.TerminationMessagePathDefault
	}
	if container.TerminationMessagePolicy == "" {
		container.TerminationMessagePolicy = corev1.TerminationMessageReadFile
	}
	if container.ImagePullPolicy == "" {
		container.ImagePullPolicy = pullPolicy(container.Image)
	}
	for name, limit := range container.Resources.Limits {
		if _, ok := container.Resources.Requests[name]; ok {
			continue
		}
		if container.Resources.Requests == nil {
			container.Resources.Requests = corev1.ResourceList{}
		}
		container.Resources.Requests[name] = limit.DeepCopy()
	}
}

func pullPolicy(image string) corev1.PullPolicy {
	if strings.Contains(image, "@") {
		return corev1.PullIfNotPresent
	}
	// A colon before the last slash belongs to the registry's port.
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !tagged || tag == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

// setAddressDefaults keeps podIP and podIPs in step. Where they differ the
// single address wins.
func setAddressDefaults(status *corev1.PodStatus) {
	switch {
	case status.PodIP != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != status.PodIP):
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	case status.PodIP == "" && len(status.PodIPs) > 0:
		status.PodIP = status.PodIPs[0].IP
	}
}

// qosClass is the quality of service class that follows from the resources.
func qosClass(spec *corev1.PodSpec) corev1.PodQOSClass {
	if spec.Resources != nil {
		return classOf(*spec.Resources)
	}
	var class corev1.PodQOSClass
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			class = combine(class, classOf(containers[i].Resources))
		}
	}
	if class == "" {
		return corev1.PodQOSBestEffort
	}
	return class
}

func classOf(resources corev1.ResourceRequirements) corev1.PodQOSClass {
	var class corev1.PodQOSClass
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := resources.Requests[name], resources.Limits[name]
		switch {
		case !request.Equal(limit):
			return corev1.PodQOSBurstable
		case request.IsZero():
			class = combine(class, corev1.PodQOSBestEffort)
		default:
			class = combine(class, corev1.PodQOSGuaranteed)
		}
	}
	return class
}

// combine gives the class of two parts: any difference makes it burstable.
func combine(a, b corev1.PodQOSClass) corev1.PodQOSClass {
	if a == "" || a == b {
		return b
	}
	return corev1.PodQOSBurstable
}
