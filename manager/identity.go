// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// maxUIDBytes is far above what Kubernetes makes, and below what a key may have.
const maxUIDBytes = 253

// checkIdentity wants what every stored status needs (G9).
func checkIdentity(pod *v1.Pod) error {
	switch {
	case pod == nil:
		return &InvalidError{Field: "pod", Detail: "is nil"}
	case pod.UID == "":
		return &InvalidError{Field: "metadata.uid", Detail: "is required"}
	case pod.Name == "":
		return &InvalidError{Field: "metadata.name", Detail: "is required"}
	case pod.Namespace == "":
		return &InvalidError{Field: "metadata.namespace", Detail: "is required"}
	}
	return nil
}

// checkEntry compares the pod with what is stored under its UID. For a new UID it
// looks at the names as the API server does; once is enough.
func checkEntry(pod *v1.Pod, entry *projection.Entry) error {
	if entry != nil {
		return checkNames(pod, entry)
	}
	if len(pod.UID) > maxUIDBytes {
		return &InvalidError{Field: "metadata.uid", Detail: fmt.Sprintf("%d bytes, at most %d", len(pod.UID), maxUIDBytes)}
	}
	if i := strings.IndexFunc(string(pod.UID), func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }); i >= 0 {
		return &InvalidError{Field: "metadata.uid", Detail: fmt.Sprintf("character %d is not allowed", i+1)}
	}
	if problems := validation.IsDNS1123Subdomain(pod.Name); len(problems) > 0 {
		return &InvalidError{Field: "metadata.name", Detail: strings.Join(problems, "; ")}
	}
	if problems := validation.IsDNS1123Label(pod.Namespace); len(problems) > 0 {
		return &InvalidError{Field: "metadata.namespace", Detail: strings.Join(problems, "; ")}
	}
	return nil
}

func checkNames(pod *v1.Pod, entry *projection.Entry) error {
	if entry.Name == pod.Name && entry.Namespace == pod.Namespace {
		return nil
	}
	return &UIDConflictError{
		UID:    entry.UID,
		Stored: types.NamespacedName{Namespace: entry.Namespace, Name: entry.Name},
		Given:  types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
	}
}

// checkExpected is the condition of SetPodStatusIf; nil expects nothing.
func checkExpected(uid types.UID, entry *projection.Entry, expected *journal.Version) error {
	if expected == nil {
		return nil
	}
	var stored journal.Version
	if entry != nil {
		stored = entry.Version
	}
	if stored == *expected {
		return nil
	}
	return &VersionConflictError{UID: uid, Expected: *expected, Stored: stored}
}
