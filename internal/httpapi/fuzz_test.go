// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// FuzzBody wants each body to be decoded or refused with 400 to 422, whatever it
// is sent as.
func FuzzBody(f *testing.F) {
	pod := newPod("web-0", "uid-a")
	f.Add([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"uid":"u"},"status":{"phase":"Running"}}`))
	f.Add([]byte(`[{"op":"copy","from":"/status","path":"/status/x"},{"op":"test","path":"","value":null}]`))
	f.Add([]byte(`{"status":{"conditions":[{"$patch":"delete","type":"Ready"}],"$setElementOrder/conditions":[{"type":"x"}]}}`))
	f.Add([]byte(`{"status":null,"metadata":{"$retainKeys":["a"]}}`))
	f.Add([]byte("k8s\x00\n\x09\n\x02v1\x12\x03Pod\x12\x00"))
	f.Add([]byte(`{"a":"\u0000\`))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := httptest.NewRecorder()
		for _, mediaType := range []string{contentJSON, contentProtobuf} {
			if _, err := decodePod(w, data, mediaType, validation{warn: true}); err != nil && statusOf(err).Code != http.StatusBadRequest {
				t.Errorf("%s: got %v", mediaType, err)
			}
		}
		if checkDepth(data) != nil {
			return
		}
		document := []byte(jsonOf(t, pod))
		for _, patchType := range []types.PatchType{types.StrategicMergePatchType, types.MergePatchType, types.JSONPatchType} {
			apply, err := patcher(patchType)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := apply(document, data); err != nil {
				if code := statusOf(err).Code; code < 400 || code > 422 {
					t.Errorf("%s: got %d: %v", patchType, code, err)
				}
			}
		}
	})
}

// FuzzListOptions wants each query to be understood or refused, with 422 for what
// does not go together.
func FuzzListOptions(f *testing.F) {
	f.Add("watch=1&resourceVersion=5&labelSelector=a in (b,c)&fieldSelector=status.phase!=Running")
	f.Add("limit=5&continue=eyJucyI6ImEiLCJuIjoiYiIsInJ2IjoxfQ&includeObject=None")
	f.Fuzz(func(t *testing.T, query string) {
		r := &http.Request{URL: &url.URL{RawQuery: query}}
		if _, err := parseListOptions(r); err != nil {
			if code := statusOf(err).Code; code != http.StatusBadRequest && code != http.StatusUnprocessableEntity {
				t.Errorf("got %v", err)
			}
		}
	})
}
