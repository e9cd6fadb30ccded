// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"net/http"
	"runtime"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sversion "k8s.io/apimachinery/pkg/version"
)

// discover answers what clients ask before they ask for pods.
func (c *call) discover() {
	c.media = mediaTypes[0]
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		c.fail(errMethodNotAllowed())
		return
	}
	switch c.r.URL.Path {
	case "/healthz", "/livez", "/readyz":
		c.send(http.StatusOK, "text/plain; charset=utf-8", []byte("ok"))
	case "/version":
		c.answerJSON(serverVersion())
	case "/api":
		c.answerJSON(metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"},
			Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{
				{ClientCIDR: "0.0.0.0/0", ServerAddress: c.r.Host},
			},
		})
	case "/apis":
		c.answerJSON(metav1.APIGroupList{
			TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups:   []metav1.APIGroup{},
		})
	case "/api/v1", "/api/v1/":
		c.answerJSON(coreResources())
	default:
		c.fail(errNoSuchPath())
	}
}

func serverVersion() k8sversion.Info {
	return k8sversion.Info{
		Major: "1", Minor: "37", GitVersion: "v1.37.2+fakeapi",
		GitCommit: "unknown", GitTreeState: "clean", BuildDate: "1970-01-01T00:00:00Z",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func coreResources() metav1.APIResourceList {
	return metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList"},
		GroupVersion: "v1",
		APIResources: []metav1.APIResource{
			{
				Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod", ShortNames: []string{"po"}, Categories: []string{"all"},
				Verbs: metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
			},
			{Name: "pods/status", Namespaced: true, Kind: "Pod", Verbs: metav1.Verbs{"get", "patch", "update"}},
		},
	}
}

func (c *call) answerJSON(value any) {
	body, err := json.Marshal(value)
	if err != nil {
		c.fail(err)
		return
	}
	c.send(http.StatusOK, "application/json", body)
}
