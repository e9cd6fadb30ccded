// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// kubernetesVersion is the release whose shapes this interface has.
const kubernetesVersion = "v1.37.0"

// GET /version
func (a *api) getVersion(w http.ResponseWriter, _ *http.Request) error {
	v := version.Info{
		Major: "1", Minor: "37", GitVersion: kubernetesVersion + "+statusstore",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	writeJSON(w, http.StatusOK, v)
	return nil
}

// GET /api
func getAPIVersions(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{"v1"},
		ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	})
	return nil
}

// GET /apis
func getAPIGroups(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   []metav1.APIGroup{},
	})
	return nil
}

// GET /api/v1
func getAPIResources(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: "v1",
		APIResources: []metav1.APIResource{
			{
				Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod",
				Verbs: metav1.Verbs{"get", "list", "watch"}, ShortNames: []string{"po"}, Categories: []string{"all"},
			},
			{Name: "pods/status", Namespaced: true, Kind: "Pod", Verbs: metav1.Verbs{"get", "patch", "update"}},
		},
	})
	return nil
}
