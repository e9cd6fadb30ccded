// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// resourceVersion is a sequence as Kubernetes' clients know it.
func resourceVersion(s journal.Sequence) string { return strconv.FormatUint(uint64(s), 10) }

// podOf is a pod as it is shown: the remembered object with the stored status. The
// status is shared with the projection and must not be changed.
func (a *api) podOf(e *projection.Entry) *v1.Pod {
	pod := a.objectOf(e)
	pod.Status = *e.Status
	pod.ResourceVersion = resourceVersion(e.Sequence)
	return pod
}

// objectOf is what is known of a pod beside its status; only its identity if no
// caller and no API server ever showed the object.
func (a *api) objectOf(e *projection.Entry) *v1.Pod {
	pod, ok := a.m.Pod(e.UID)
	if !ok {
		pod = &v1.Pod{Spec: v1.PodSpec{NodeName: a.Node}}
	}
	pod.TypeMeta = podMeta
	pod.Namespace, pod.Name, pod.UID = e.Namespace, e.Name, e.UID
	pod.ManagedFields = nil
	return pod
}

// entry finds the pod of a name: the one with the newest event, if it was
// recreated and the old one is still there.
func (a *api) entry(r *http.Request) (*projection.Entry, error) {
	namespace, name := r.PathValue("ns"), r.PathValue("name")
	entries := a.m.EntriesByName(namespace, name)
	if len(entries) == 0 {
		return nil, apierrors.NewNotFound(podResource, name)
	}
	return entries[0], nil
}

// GET /api/v1/namespaces/{ns}/pods/{name}[/status]
func (a *api) getPod(w http.ResponseWriter, r *http.Request) error {
	f, err := negotiate(r, formatJSON, formatProtobuf, formatTable)
	if err != nil {
		return err
	}
	e, err := a.entry(r)
	if err != nil {
		return err
	}
	return a.writePod(w, r, f, e)
}

func (a *api) writePod(w http.ResponseWriter, r *http.Request, f format, e *projection.Entry) error {
	pod := a.podOf(e)
	setPodHeaders(w, e)
	if f == formatTable {
		objects, err := parseTableObjects(r.URL.Query())
		if err != nil {
			return err
		}
		t := newTable(pod.ResourceVersion, listOptions{tableObjects: objects})
		t.add(pod)
		return writeObject(w, f, t.Table)
	}
	return writeObject(w, f, pod)
}

func setPodHeaders(w http.ResponseWriter, e *projection.Entry) {
	w.Header().Set(HeaderVersion, strconv.FormatUint(uint64(e.Version), 10))
	w.Header().Set(HeaderAckedVersion, strconv.FormatUint(uint64(e.Acked), 10))
	w.Header().Set(HeaderSequence, resourceVersion(e.Sequence))
	w.Header().Set("ETag", `"`+strconv.FormatUint(uint64(e.Version), 10)+`"`)
}

// GET /api/v1/pods and /api/v1/namespaces/{ns}/pods
func (a *api) listPods(w http.ResponseWriter, r *http.Request) error {
	o, err := parseListOptions(r)
	if err != nil {
		return err
	}
	f, err := negotiate(r, formatJSON, formatProtobuf, formatTable)
	if err != nil {
		return err
	}
	if o.watch {
		return a.watchPods(w, r, o, f)
	}
	page, err := a.page(o)
	if err != nil {
		return err
	}
	switch f {
	case formatTable:
		t := newTable(page.meta.ResourceVersion, o)
		t.ListMeta = page.meta
		for _, pod := range page.pods(a) {
			t.add(pod)
		}
		return writeObject(w, f, t.Table)
	case formatProtobuf:
		list := &v1.PodList{TypeMeta: podListMeta, ListMeta: page.meta, Items: []v1.Pod{}}
		for _, pod := range page.pods(a) {
			list.Items = append(list.Items, *pod)
		}
		return writeObject(w, f, list)
	default:
		return a.streamList(w, page)
	}
}

// page is a part of a list.
type page struct {
	meta    metav1.ListMeta
	entries []*projection.Entry
}

// page selects what the options ask for. The head is read before the entries, so
// that a watch from it misses nothing; what it repeats is harmless.
func (a *api) page(o listOptions) (page, error) {
	head, _ := a.m.Journal().Head()
	if err := checkSequence(o, head); err != nil {
		return page{}, err
	}
	var p page
	p.meta.ResourceVersion = resourceVersion(cmp.Or(o.from.Sequence, head))
	selects := !o.labels.Empty() || !o.fields.Empty()
	rest := int64(0)
	for _, e := range onePerName(a.m.Entries()) {
		if o.namespace != "" && e.Namespace != o.namespace || o.from.Sequence != 0 && o.from.before(e.Namespace, e.Name) {
			continue
		}
		if o.limit > 0 && len(p.entries) == o.limit {
			rest++
			if selects { // how many more match is not known
				break
			}
			continue
		}
		if !selects || o.matches(a.podOf(e)) {
			p.entries = append(p.entries, e)
		}
	}
	if rest > 0 {
		last := p.entries[len(p.entries)-1]
		p.meta.Continue = position{last.Namespace, last.Name, cmp.Or(o.from.Sequence, head)}.token()
		if !selects {
			p.meta.RemainingItemCount = &rest
		}
	}
	return p, nil
}

// checkSequence refuses a resourceVersion that can't be served. One above the head
// comes from another journal, or from this one before an older copy was put back.
func checkSequence(o listOptions, head journal.Sequence) error {
	if o.sequence > head {
		return expired("resourceVersion %d is above the head of the journal, %d: list again", o.sequence, head)
	}
	if o.exact && o.sequence != head {
		return expired("resourceVersion %d is not the newest one, and older ones are not kept as a list", o.sequence)
	}
	return nil
}

// onePerName leaves out pods that were recreated under their name: there can be
// one only in Kubernetes' API. The entries are sorted by name.
func onePerName(entries []*projection.Entry) []*projection.Entry {
	kept := entries[:0]
	for _, e := range entries {
		if n := len(kept); n > 0 && kept[n-1].Namespace == e.Namespace && kept[n-1].Name == e.Name {
			if e.Sequence > kept[n-1].Sequence {
				kept[n-1] = e
			}
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

// pods yields the objects one by one, so that not all are in memory at once.
func (p page) pods(a *api) func(yield func(int, *v1.Pod) bool) {
	return func(yield func(int, *v1.Pod) bool) {
		for i, e := range p.entries {
			if !yield(i, a.podOf(e)) {
				return
			}
		}
	}
}

// streamList writes a PodList item by item: ten thousand pods don't become one
// buffer, however slowly it is read.
func (a *api) streamList(w http.ResponseWriter, p page) error {
	meta, err := json.Marshal(p.meta)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Content-Type", contentJSON)
	if _, err := fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, podListMeta.Kind, podListMeta.APIVersion, meta); err != nil {
		return err
	}
	for i, pod := range p.pods(a) {
		pod.TypeMeta = metav1.TypeMeta{} // as in Kubernetes' lists
		data, err := json.Marshal(pod)
		if err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		if i > 0 {
			data = append([]byte{','}, data...)
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	_, err = w.Write([]byte("]}\n"))
	return err
}
