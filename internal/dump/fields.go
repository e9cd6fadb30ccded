// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Change is one field of a status that is not as it was. Old or New is nil where
// the field was not set.
type Change struct {
	Path string `json:"path"`
	Old  any    `json:"old"`
	New  any    `json:"new"`
}

// changesBetween compares two statuses field by field, in order of paths. Lists
// are compared by the name or type of their elements, not by their order.
func changesBetween(old, new *v1.PodStatus) ([]Change, error) {
	a, err := tree(old)
	if err != nil {
		return nil, err
	}
	b, err := tree(new)
	if err != nil {
		return nil, err
	}
	var out []Change
	compare("", a, b, &out)
	return out, nil
}

// tree is the status as JSON has it.
func tree(s *v1.PodStatus) (any, error) {
	if s == nil {
		return nil, nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("compare statuses: %w", err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("compare statuses: %w", err)
	}
	return withoutNulls(v), nil
}

// withoutNulls drops what JSON spells out but a status does not have.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, child any) bool { return child == nil })
		for _, child := range v {
			withoutNulls(child)
		}
	case []any:
		for _, child := range v {
			withoutNulls(child)
		}
	}
	return v
}

// compare goes down to the leaves, so that an added subtree is shown by its
// fields. nil stands for a field that is not set.
func compare(path string, old, new any, out *[]Change) {
	a, b := children(old), children(new)
	if len(a)+len(b) > 0 && (a != nil || old == nil) && (b != nil || new == nil) {
		names := map[string]any{}
		maps.Copy(names, a)
		maps.Copy(names, b)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			compare(path+name, a[name], b[name], out)
		}
		return
	}
	if old == nil && new == "" || old == "" && new == nil {
		return // fields that are always there in JSON, such as a container's image
	}
	if !reflect.DeepEqual(old, new) {
		*out = append(*out, Change{Path: trimDot(path), Old: old, New: new})
	}
}

func trimDot(path string) string {
	if path != "" && path[0] == '.' {
		return path[1:]
	}
	return path
}

// children returns an object's fields as ".name" and a list's elements as "[key]";
// nil for a leaf.
func children(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, child := range v {
			out["."+k] = child
		}
		return out
	case []any:
		out := make(map[string]any, len(v))
		for i, child := range v {
			key := elementKey(child, i)
			if _, taken := out[key]; taken {
				key = "[" + strconv.Itoa(i) + "]"
			}
			out[key] = child
		}
		return out
	default:
		return nil
	}
}

// elementKey is what names an element in the lists of a pod's status.
func elementKey(v any, i int) string {
	if object, ok := v.(map[string]any); ok {
		for _, field := range []string{"type", "name", "ip", "mountPath", "containerName"} {
			if name, ok := object[field].(string); ok && name != "" {
				return "[" + name + "]"
			}
		}
	}
	return "[" + strconv.Itoa(i) + "]"
}

// changeLog remembers each pod's last status, encoded, to tell what the next
// event changes. Its events are as they were stored; changes are redacted.
type changeLog struct {
	redact *redactor
	last   map[types.UID]*Event
}

// next takes the pod's next event and, if told, compares it with the one before.
func (l changeLog) next(e *Event, compareNow bool) ([]Change, error) {
	var changes []Change
	var err error
	switch e.Kind {
	case "set", "finished":
		last := l.last[e.UID]
		if compareNow {
			changes, err = l.compare(last, e)
		}
		kept := *e
		if kept.stored.Status != nil {
			kept.Status = nil // the encoded one is smaller
		}
		l.last[e.UID] = &kept
	case "removed":
		delete(l.last, e.UID)
	}
	return changes, err
}

func (l changeLog) compare(last, e *Event) ([]Change, error) {
	if err := e.decode(); err != nil {
		return nil, err
	}
	var old *v1.PodStatus
	if last != nil && last.Incarnation == e.Incarnation {
		before := *last
		if err := before.decode(); err == nil { // else named when it was printed
			old = before.Status
		}
	}
	return changesBetween(l.redact.status(old), l.redact.status(e.Status))
}
