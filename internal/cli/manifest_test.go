// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	podA  = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: ua, namespace: shop}\nstatus: {phase: Running}\n"
	podB  = "apiVersion: v1\nkind: Pod\nmetadata: {name: b, uid: ub}\nstatus: {phase: Pending}\n"
	jsonC = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c","uid":"uc"},"status":{"phase":"Failed"}}`
)

func TestReadManifests(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // NAMESPACE/NAME UID PHASE
		warning    string
	}{
		{"one document", podA, []string{"shop/a ua Running"}, ""},
		{"namespace from the command line", podB, []string{"other/b ub Pending"}, ""},
		{"many documents", "# comment\n---\n" + podA + "---\n---\n" + podB + "---\n# end\n", []string{"shop/a ua Running", "other/b ub Pending"}, ""},
		{"JSON", jsonC, []string{"other/c uc Failed"}, ""},
		{"JSON objects one after the other", jsonC + "\n" + jsonC, []string{"other/c uc Failed", "other/c uc Failed"}, ""},
		{"JSON and YAML", jsonC + "\n---\n" + podB, []string{"other/c uc Failed", "other/b ub Pending"}, ""},
		{"YAML in braces", "{apiVersion: v1, kind: Pod, metadata: {name: d, uid: ud}, status: {phase: Running}}", []string{"other/d ud Running"}, ""},
		{"List", `{"apiVersion":"v1","kind":"List","items":[` + jsonC + `]}`, []string{"other/c uc Failed"}, ""},
		{"PodList whose items have no kind", "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: e, uid: ue}\n  status: {phase: Running}\n", []string{"other/e ue Running"}, ""},
		{"field of a newer release beside the status", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: ua}\nspec: {newField: 1}\nstatus: {phase: Running}\n", []string{"other/a ua Running"}, `unknown field "spec.newField"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readManifests(strings.NewReader(tt.text), "other")
			if err != nil {
				t.Fatal(err)
			}
			var pods []string
			for _, pod := range got.pods {
				pods = append(pods, pod.Namespace+"/"+pod.Name+" "+string(pod.UID)+" "+string(pod.Status.Phase))
			}
			if diff := cmp.Diff(tt.want, pods); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
			if warnings := strings.Join(got.warnings, "\n"); (warnings == "") != (tt.warning == "") || !strings.Contains(warnings, tt.warning) {
				t.Errorf("warnings: got %q, want %q", warnings, tt.warning)
			}
		})
	}
}

// TestG9_ReadManifests wants nothing from a file in which anything is wrong.
func TestG9_ReadManifests(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty", "", "no pod"},
		{"only comments", "# nothing\n---\n# here\n", "no pod"},
		{"empty list", "apiVersion: v1\nkind: List\nitems: []\n", "no pod"},
		{"no YAML", podA + "---\na: [", "document 2: "},
		{"no object", "just text", "document 1: want a Pod"},
		{"list of nothing known", "- 1\n- 2\n", "document 1: want a Pod"},
		{"truncated JSON", `{"apiVersion":"v1","kind":"Pod"`, "document 1: "},
		{"no kind", "metadata: {name: a}\n", `"kind: Pod"`},
		{"other kind", "apiVersion: v1\nkind: Node\n", "got v1 Node"},
		{"other version", "apiVersion: v2\nkind: Pod\n", "got v2 Pod"},
		{"other kind in a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node}\n", "document 1, item 1: "},
		{"list in a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List}\n", "document 1, item 1: "},
		{"no name", "apiVersion: v1\nkind: Pod\nmetadata: {uid: a}\nstatus: {phase: Running}\n", "metadata.name is missing"},
		{"no UID", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nstatus: {phase: Running}\n", "pod other/a: metadata.uid is missing"},
		{"no status", "apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: ua}\n", "status.phase is missing"},
		{"misspelt status field", strings.Replace(podA, "phase", "phaze", 1), `unknown field "status.phaze"`},
		{"wrong type", strings.Replace(podA, "phase: Running", "conditions: 3", 1), "conditions"},
		{"field twice in YAML", podA + "kind: Pod\n", `"kind" already set`},
		{"field twice in JSON", strings.Replace(jsonC, `"phase":"Failed"`, `"phase":"Failed","phase":"Running"`, 1), `duplicate field "status.phase"`},
		{"second of two is wrong", podA + "---\napiVersion: v1\nkind: Node\n", "document 2: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readManifests(strings.NewReader(tt.text), "other")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
			if len(got.pods) > 0 {
				t.Errorf("got %d pods beside the error", len(got.pods))
			}
		})
	}
}

func FuzzReadManifests(f *testing.F) {
	for _, seed := range []string{podA, podA + "---\n" + podB, jsonC, `{"apiVersion":"v1","kind":"List","items":[` + jsonC + `]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readManifests(strings.NewReader(text), "other")
		if (err == nil) != (len(got.pods) > 0) {
			t.Errorf("got %d pods and error %v", len(got.pods), err)
		}
		for _, pod := range got.pods {
			if pod.Name == "" || pod.UID == "" || pod.Namespace == "" || pod.Status.Phase == "" {
				t.Errorf("got an incomplete pod %+v", pod.ObjectMeta)
			}
		}
	})
}
