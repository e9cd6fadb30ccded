// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// A real informer, set up as the syncer does it.
var informerCases = []testCase{
	{"Protobuf", func(b *bench) { b.checkInformer(b.target.Config) }},
	{"JSON", func(b *bench) {
		config := rest.CopyConfig(b.target.Config)
		config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
		b.checkInformer(config)
	}},
}

func (b *bench) checkInformer(config *rest.Config) {
	b.Helper()
	b.create("a")
	b.create("b", unbound)

	factory := informers.NewSharedInformerFactoryWithOptions(clientFor(b.T, config), 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = "spec.nodeName=" + b.target.Node
			options.LabelSelector = b.label()
		}))
	informer := factory.Core().V1().Pods().Informer()
	seen := newSightings()
	if _, err := informer.AddEventHandler(seen.handler(b.prefix)); err != nil {
		b.Fatalf("add event handler: %v", err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	b.Cleanup(func() {
		close(stop)
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(b.ctx.Done(), informer.HasSynced) {
		b.Fatal("informer doesn't sync")
	}
	b.waitFor(seen, "add a Pending")
	if keys := informer.GetStore().ListKeys(); len(keys) != 1 {
		b.Errorf("store has %v, want pod a only", keys)
	}
	b.mustPatch(b.prefix+"a", `{"status":{"phase":"Running"}}`)
	b.waitFor(seen, "update a Running")
	b.create("c")
	b.waitFor(seen, "add c Pending")
	b.mustDelete(b.prefix+"a", grace(0))
	b.waitFor(seen, "delete a")
}

// sightings are the informer's events in words.
type sightings struct {
	// mu guards the fields below.
	mu      sync.Mutex
	lines   []string
	changed chan struct{} // closed and replaced by each event
}

func newSightings() *sightings { return &sightings{changed: make(chan struct{})} }

func (s *sightings) add(words ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, strings.Join(words, " "))
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *sightings) handler(prefix string) cache.ResourceEventHandler {
	name := func(pod *corev1.Pod) string { return strings.TrimPrefix(pod.Name, prefix) }
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			pod := obj.(*corev1.Pod)
			s.add("add", name(pod), string(pod.Status.Phase))
		},
		UpdateFunc: func(_, obj any) {
			pod := obj.(*corev1.Pod)
			s.add("update", name(pod), string(pod.Status.Phase))
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			s.add("delete", name(obj.(*corev1.Pod)))
		},
	}
}

// waitFor waits until the informer has told line.
func (b *bench) waitFor(seen *sightings, line string) {
	b.Helper()
	for {
		seen.mu.Lock()
		told, changed := strings.Join(seen.lines, "; "), seen.changed
		seen.mu.Unlock()
		if strings.Contains(told+";", line+";") {
			return
		}
		select {
		case <-changed:
		case <-b.ctx.Done():
			b.Fatalf("informer told [%s], want %q", told, line)
		}
	}
}
