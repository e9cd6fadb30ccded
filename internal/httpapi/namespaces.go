// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/statusstore/statusstore/projection"
)

// GET /api/v1/namespaces/{ns}
//
// When kubectl does not find a pod it asks whether the namespace is there, and
// without an answer blames that. One that has pods is.
func (a *api) getNamespace(w http.ResponseWriter, r *http.Request) error {
	f, err := negotiate(r, formatJSON, formatProtobuf)
	if err != nil {
		return err
	}
	name := r.PathValue("ns")
	if !slices.ContainsFunc(a.m.Entries(), func(e *projection.Entry) bool { return e.Namespace == name }) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
	}
	return writeObject(w, f, &v1.Namespace{
		TypeMeta:   metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     v1.NamespaceStatus{Phase: v1.NamespaceActive},
	})
}
