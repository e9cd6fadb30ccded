// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// redactor replaces text that says something about a site: names, UIDs,
// addresses, images, messages. What is replaced is told apart still: the same text
// gets the same word each time, so that a story can be followed. Words of
// Kubernetes' own vocabulary stay. A nil redactor changes nothing.
type redactor struct {
	words  map[string]string // by class and text
	counts map[string]int    // by class
}

func newRedactor(wanted bool) *redactor {
	if !wanted {
		return nil
	}
	return &redactor{words: map[string]string{}, counts: map[string]int{}}
}

// vocabulary is what every cluster has in common. Everything else is replaced.
var vocabulary = wordSet(`true false True False Unknown
	Pending Running Succeeded Failed Guaranteed Burstable BestEffort
	Ready Initialized ContainersReady PodScheduled PodReadyToStartContainers DisruptionTarget PodResizePending PodResizeInProgress AllContainersRestarting
	ContainersNotReady ContainersNotInitialized PodCompleted PodFailed ReadinessGatesNotReady UnknownContainerStatuses Unschedulable SchedulingGated
	ContainerCreating PodInitializing CrashLoopBackOff ImagePullBackOff ErrImagePull ErrImageNeverPull InvalidImageName CreateContainerConfigError
	CreateContainerError RunContainerError ImageInspectError RegistryUnavailable
	Completed Error OOMKilled ContainerCannotRun DeadlineExceeded StartError ContainerStatusUnknown Evicted NodeLost NodeShutdown Terminated
	Preempting UnexpectedAdmissionError NodeAffinity OutOfcpu OutOfmemory OutOfpods TerminationByKubelet PreemptionByScheduler DeletionByTaintManager
	EvictionByEvictionAPI Proposed InProgress Deferred Infeasible
	cpu memory ephemeral-storage pods Enabled Disabled IfPossible
	clean software bootID suspect salvaged container message from to
	set readiness startup terminate resize volume observed orphaned deleted recreated finished removed rejected opened
	unchanged missing waiting running terminated`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{"": true}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// word replaces one text. The class is what the replacement begins with.
func (r *redactor) word(class, text string) string {
	if r == nil || text == "" {
		return text
	}
	key := class + "\x00" + text
	if w, ok := r.words[key]; ok {
		return w
	}
	r.counts[class]++
	w := fmt.Sprintf("%s-%d", class, r.counts[class])
	r.words[key] = w
	return w
}

// text replaces what is not of the vocabulary.
func (r *redactor) text(s string) string {
	if r == nil || vocabulary[s] {
		return s
	}
	return r.word("text", s)
}

func (r *redactor) uid(uid types.UID) types.UID { return types.UID(r.word("uid", string(uid))) }

// pod replaces what names a pod.
func (r *redactor) pod(namespace, name string, uid types.UID) (string, string, types.UID) {
	return r.word("ns", namespace), r.word("pod", name), r.uid(uid)
}

// status returns a redacted copy.
func (r *redactor) status(s *v1.PodStatus) *v1.PodStatus {
	if r == nil || s == nil {
		return s
	}
	out := s.DeepCopy()
	r.value(reflect.ValueOf(out).Elem(), "text")
	return out
}

// classes of fields that are better read as what they are.
var classes = map[string]string{
	"PodIP": "ip", "IP": "ip", "HostIP": "ip", "Image": "image", "ImageID": "image", "ContainerID": "container-id", "Name": "name", "Message": "message",
	"NominatedNodeName": "node",
}

// value replaces all strings below v, map keys too.
func (r *redactor) value(v reflect.Value, class string) {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); !vocabulary[s] {
			v.SetString(r.word(class, s))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			r.value(v.Elem(), class)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			r.value(v.Index(i), class)
		}
	case reflect.Map:
		r.mapping(v, class)
	case reflect.Struct:
		if keptWhole[v.Type()] {
			return
		}
		for i := range v.NumField() {
			name, field := v.Type().Field(i).Name, v.Field(i)
			if field.CanSet() {
				below := classes[name]
				if below == "" {
					below = "text"
				}
				r.value(field, below)
			}
		}
	default:
	}
}

// keptWhole are types without text of anybody's own.
var keptWhole = map[reflect.Type]bool{reflect.TypeFor[metav1.Time](): true, reflect.TypeFor[resource.Quantity](): true}

// mapping replaces keys, and values where they are text. A quantity is a number.
func (r *redactor) mapping(v reflect.Value, class string) {
	if v.IsNil() {
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for it := v.MapRange(); it.Next(); {
		key := reflect.New(v.Type().Key()).Elem()
		key.Set(it.Key())
		r.value(key, class)
		value := reflect.New(v.Type().Elem()).Elem()
		value.Set(it.Value())
		if value.Kind() != reflect.Struct {
			r.value(value, class)
		}
		out.SetMapIndex(key, value)
	}
	v.Set(out)
}

// attributes returns a redacted copy.
func (r *redactor) attributes(in map[string]string) map[string]string {
	if r == nil || in == nil {
		return in
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[r.text(k)] = r.text(v)
	}
	return out
}

// event returns the event redacted. Its status is decoded by then, or it is left
// out.
func (r *redactor) event(e *Event) *Event {
	if r == nil {
		return e
	}
	out := *e
	out.Namespace, out.Name, out.UID = r.pod(e.Namespace, e.Name, e.UID)
	out.Reason = journal.Reason(r.text(string(e.Reason)))
	out.Kind = r.text(e.Kind)
	out.Status, out.Attributes, out.Error = r.status(e.Status), r.attributes(e.Attributes), r.quoted(e.Error)
	out.stored = journal.Event{}
	return &out
}

// entry returns the entry redacted.
func (r *redactor) entry(e *projection.Entry) *projection.Entry {
	if r == nil || e == nil {
		return e
	}
	out := *e
	out.Namespace, out.Name, out.UID = r.pod(e.Namespace, e.Name, e.UID)
	out.Reason, out.Status = journal.Reason(r.text(string(e.Reason))), r.status(e.Status)
	return &out
}

var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// quoted replaces what messages of this program's own quote.
func (r *redactor) quoted(s string) string {
	if r == nil {
		return s
	}
	return quotedText.ReplaceAllStringFunc(s, func(q string) string { return `"` + r.word("text", q[1:len(q)-1]) + `"` })
}
