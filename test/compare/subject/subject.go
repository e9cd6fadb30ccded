// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/status"

	"github.com/statusstore/statusstore/contrib/kubelet"
	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// Subject is a status manager as a kubelet runs it.
type Subject struct {
	Manager status.Manager
	pods    kubepod.Manager
	stop    func() error
}

// NoLog drops what a manager has to say.
var NoLog = logr.Discard()

// kubeletRest is what a status manager asks of the rest of a kubelet: containers
// run, and nobody measures how fast pods start.
type kubeletRest struct{}

func (kubeletRest) PodCouldHaveRunningContainers(*v1.Pod) bool { return true }
func (kubeletRest) RecordStatusUpdated(klog.Logger, *v1.Pod)   {}
func (kubeletRest) DeletePodStartupState(types.UID)            {}

// Stock makes the kubelet's own manager. It remembers nothing of a previous one.
// Without a client it only stores.
func Stock(client kubernetes.Interface, pods []*v1.Pod) *Subject {
	s := &Subject{pods: kubepod.NewBasicPodManager()}
	s.Update(pods...)
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), NoLog))
	s.Manager = status.NewManager(client, s.pods, kubeletRest{}, kubeletRest{})
	s.Manager.Start(ctx)
	// Its loop has no end; from now on its requests fail.
	s.stop = func() error { cancel(); return nil }
	return s
}

// Ours makes our manager on the journal in dir, which may be of a previous one.
// Without a client it only stores.
func Ours(client kubernetes.Interface, node, dir string, pods []*v1.Pod) (*Subject, error) {
	s := &Subject{pods: kubepod.NewBasicPodManager()}
	s.Update(pods...)
	m, err := kubelet.New(kubelet.Options{
		Store: manager.Options{
			Path: filepath.Join(dir, journal.FileName), Node: node, Client: client,
			Logger: slog.New(slog.DiscardHandler),
		},
		Pods: s.pods, DeletionSafety: kubeletRest{}, Logger: NoLog,
	})
	if err != nil {
		return nil, err
	}
	s.Manager, s.stop = m, m.Close
	if client != nil {
		m.Start(klog.NewContext(context.Background(), NoLog))
	}
	return s, nil
}

// Update tells the subject of pods as the server has them.
func (s *Subject) Update(pods ...*v1.Pod) {
	for _, p := range pods {
		s.pods.UpdatePod(p)
	}
}

// Set sets a status as a pod's worker does.
func (s *Subject) Set(pod *v1.Pod, st v1.PodStatus) {
	s.Manager.SetPodStatus(NoLog, pod, st)
}

// Stop ends the subject. Of ours the journal stays.
func (s *Subject) Stop() error { return s.stop() }
