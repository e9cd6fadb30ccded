// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	columns = `"columnDefinitions":[{"name":"Name"},{"name":"Status"},{"name":"IP","priority":1}]`
	rowA    = `{"cells":["a","Running","10.0.0.1"],"object":{"kind":"PartialObjectMetadata","metadata":{"name":"a","namespace":"shop"}}}`
	rowB    = `{"cells":["b","Ev\u001b[31mil",null],"object":{"metadata":{"name":"b","namespace":"other"}}}`
)

func tableOf(columns string, rows ...string) string {
	return `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},` + columns + `,"rows":[` + strings.Join(rows, ",") + `]}`
}

// run executes a command line and returns what it printed.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(t.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &errs})
	return code, out.String(), errs.String()
}

func TestGet_Table(t *testing.T) {
	path := serveSocket(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept"), "as=Table") {
			t.Errorf("Accept: got %q", r.Header.Get("Accept"))
		}
		io.WriteString(w, tableOf(columns, rowA, rowB))
	})
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"table", nil, "NAME   STATUS\na      Running\nb      Ev\\x1b[31mil\n"},
		{"wide", []string{"-o", "wide"}, "NAME   STATUS         IP\na      Running        10.0.0.1\nb      Ev\\x1b[31mil   <none>\n"},
		{"all namespaces", []string{"-A"}, "NAMESPACE   NAME   STATUS\nshop        a      Running\nother       b      Ev\\x1b[31mil\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := run(t, append([]string{"get", "--socket", path}, tt.args...)...)
			if code != exitDone || out != tt.want {
				t.Errorf("got %d\n%s%s\nwant\n%s", code, out, errs, tt.want)
			}
		})
	}
}

func TestGet_Nothing(t *testing.T) {
	path := serveSocket(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, tableOf(columns)) })
	code, out, errs := run(t, "get", "--socket", path, "-n", "shop")
	if code != exitDone || out != "" || errs != "No pods found in namespace shop.\n" {
		t.Errorf("got %d, stdout %q, stderr %q", code, out, errs)
	}
}

// TestGet_Watch lists, follows from there, begins anew when the agent says that
// the watch is too old, and ends with the agent.
func TestGet_Watch(t *testing.T) {
	watches := 0
	path := serveSocket(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			io.WriteString(w, tableOf(columns, rowA))
			return
		}
		if got := r.URL.Query(); got.Get("resourceVersion") != "7" || got.Get("fieldSelector") != "metadata.name=a" {
			t.Errorf("query: got %v", got)
		}
		watches++
		if watches == 1 {
			fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`, tableOf(columns, rowB))
			fmt.Fprint(w, `{"type":"BOOKMARK","object":{}}`)
			fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}`)
		}
	})
	var out, errs bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code := execute(ctx, []string{"get", "a", "-w", "-n", "shop", "--socket", path}, streams{out: &out, err: &errs})
	if want := "NAME   STATUS\na      Running\nb      Ev\\x1b[31mil\na      Running\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	if code != exitFailed || !strings.Contains(errs.String(), "the agent ended the watch") || watches != 2 {
		t.Errorf("got %d, %d watches: %s", code, watches, &errs)
	}
}

// TestG9_RefusalShown shows a metav1.Status as one line, without control
// characters, and other answers too.
func TestG9_RefusalShown(t *testing.T) {
	for body, want := range map[string]string{
		`{"kind":"Status","code":404,"reason":"NotFound","message":"pods \"web\" not\u001b found"}`: `statusstore: pods "web" not\x1b found` + "\n",
		`<html>`: "statusstore: 404 Not Found: <html>\n",
	} {
		path := serveSocket(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, body)
		})
		code, out, errs := run(t, "get", "web", "--socket", path)
		if code != exitFailed || out != "" || errs != want {
			t.Errorf("got %d, stdout %q, stderr %q, want %q", code, out, errs, want)
		}
	}
}
