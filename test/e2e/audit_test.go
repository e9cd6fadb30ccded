// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// agentUserAgent begins the User-Agent of all requests of the agent.
const agentUserAgent = "statusstore/"

// request is one request as the API server's audit log has it.
type request struct {
	AuditID   string `json:"auditID"`
	Stage     string `json:"stage"`
	Verb      string `json:"verb"` // get, list, watch, patch, delete, …
	URI       string `json:"requestURI"`
	UserAgent string `json:"userAgent"`
	ObjectRef struct {
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %d", r.Verb, r.URI, r.ResponseStatus.Code)
}

// requests are those of one client, in the order of their first line in the log.
type requests []request

// mark is a place in the audit log.
type mark int64

// markRequests returns the present end of the audit log.
func markRequests(t *testing.T) mark {
	t.Helper()
	info, err := os.Stat(plane.auditLog())
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return mark(info.Size())
}

// agentRequests returns what the agents have sent to this namespace, and to all
// namespaces at once, since the mark.
func agentRequests(t *testing.T, since mark) requests {
	t.Helper()
	data, err := os.ReadFile(plane.auditLog())
	if err != nil {
		t.Fatal(err)
	}
	found, err := parseAudit(data[since:], agentUserAgent)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// parseAudit merges the log's lines, one per stage, into one request each. A
// watch whose begin isn't in the log, only its end, is left out: it belongs to
// what was before.
func parseAudit(log []byte, userAgent string) (requests, error) {
	byID := make(map[string]int)
	var found requests
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // being written, or cut by a SIGKILL
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("audit log: %w: %.200s", err, line)
		}
		if !strings.HasPrefix(r.UserAgent, userAgent) {
			continue
		}
		if i, ok := byID[r.AuditID]; ok {
			found[i] = r
			continue
		}
		if r.Verb == "watch" && r.Stage != "ResponseStarted" && r.ResponseStatus.Code < 300 {
			continue
		}
		byID[r.AuditID] = len(found)
		found = append(found, r)
	}
	return found, nil
}

// where returns the requests that the condition holds for.
func (rs requests) where(keep func(request) bool) requests {
	return slices.DeleteFunc(slices.Clone(rs), func(r request) bool { return !keep(r) })
}

func (rs requests) verb(verb string) requests {
	return rs.where(func(r request) bool { return r.Verb == verb })
}

// served leaves out what the server refused, as it does while it starts.
func (rs requests) served() requests {
	return rs.where(func(r request) bool { return r.ResponseStatus.Code < 300 })
}

// names counts the requests by the name of their object.
func (rs requests) names() map[string]int {
	count := make(map[string]int)
	for _, r := range rs {
		count[r.ObjectRef.Name]++
	}
	return count
}

// verbs counts the requests by verb, for messages and comparisons.
func (rs requests) verbs() map[string]int {
	count := make(map[string]int)
	for _, r := range rs {
		count[r.Verb]++
	}
	return count
}

// assertVerbs wants exactly these numbers of served requests, and that no patch
// or delete was refused.
func assertVerbs(t *testing.T, got requests, want map[string]int) {
	t.Helper()
	if !maps.Equal(got.served().verbs(), want) {
		t.Errorf("requests of the agent: got %v, want %v\n%s", got.served().verbs(), want, sample(got))
	}
	for _, r := range got {
		if (r.Verb == "patch" || r.Verb == "delete") && r.ResponseStatus.Code >= 300 {
			t.Errorf("refused by the server: %v", r)
		}
	}
}

// sample shows the first requests.
func sample(rs requests) string {
	var b strings.Builder
	for i, r := range rs {
		if i == 20 {
			fmt.Fprintf(&b, "  … and %d more\n", len(rs)-i)
			break
		}
		fmt.Fprintf(&b, "  %v\n", r)
	}
	return b.String()
}

// TestHarness_ParseAudit keeps the counting honest: stages merge; the end of an
// older watch, other clients and the torn last line don't count.
func TestHarness_ParseAudit(t *testing.T) {
	const log = `{"auditID":"0","stage":"ResponseComplete","verb":"watch","userAgent":"statusstore/v1","responseStatus":{"code":200}}
{"auditID":"1","stage":"ResponseStarted","verb":"watch","userAgent":"statusstore/v1"}
{"auditID":"2","stage":"ResponseComplete","verb":"patch","userAgent":"statusstore/v1","objectRef":{"name":"p"},"responseStatus":{"code":200}}
{"auditID":"3","stage":"ResponseComplete","verb":"get","userAgent":"e2e","responseStatus":{"code":200}}
{"auditID":"1","stage":"ResponseComplete","verb":"watch","userAgent":"statusstore/v1","responseStatus":{"code":200}}
{"auditID":"4","stage":"Respo`
	got, err := parseAudit([]byte(log), agentUserAgent)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"watch": 1, "patch": 1}; !maps.Equal(got.verbs(), want) {
		t.Errorf("got %v, want %v", got.verbs(), want)
	}
	if want := map[string]int{"p": 1}; !maps.Equal(got.verb("patch").served().names(), want) {
		t.Errorf("got %v, want %v", got.verb("patch").names(), want)
	}
}
