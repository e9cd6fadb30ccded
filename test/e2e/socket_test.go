// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// socketClient speaks HTTP over an agent's unix socket.
type socketClient struct{ http *http.Client }

func newSocketClient(path string) *socketClient {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	return &socketClient{http: &http.Client{
		Transport: &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 32},
		Timeout:   30 * time.Second,
	}}
}

// do sends a request and decodes the answer into out, unless that is nil. An
// answer outside of 2xx is an error of type *metav1.Status.
func (c *socketClient) do(method, path string, in, out any) (http.Header, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, "http://statusstore"+path, body)
	if err != nil {
		return nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		var status metav1.Status
		if err := json.Unmarshal(data, &status); err != nil || status.Kind != "Status" || int(status.Code) != resp.StatusCode {
			return nil, fmt.Errorf("%s %s: %s: not a metav1.Status: %s", method, path, resp.Status, data)
		}
		return nil, &apiError{method: method, path: path, status: status}
	}
	if out == nil {
		return resp.Header, nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %.300s", method, path, err, data)
	}
	return resp.Header, nil
}

// apiError is a refusal by the agent.
type apiError struct {
	method, path string
	status       metav1.Status
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s %s: %d %s: %s", e.method, e.path, e.status.Code, e.status.Reason, e.status.Message)
}

// set stores a pod's status and returns its version.
func (c *socketClient) set(pod *v1.Pod) (int64, error) {
	header, err := c.do(http.MethodPut, podPath(pod)+"/status", withKind(pod), nil)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(header.Get("Statusstore-Version"), 10, 64)
}

// mustSet is set for tests that can't go on without it.
func (c *socketClient) mustSet(t *testing.T, pod *v1.Pod) int64 {
	t.Helper()
	version, err := c.set(pod)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// pod returns a pod as the agent shows it, with the stored status.
func (c *socketClient) pod(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	var got v1.Pod
	if _, err := c.do(http.MethodGet, podPath(pod), nil, &got); err != nil {
		t.Fatal(err)
	}
	return &got
}

// finish says that a pod's resources are reclaimed.
func (c *socketClient) finish(t *testing.T, uid types.UID) {
	t.Helper()
	if _, err := c.do(http.MethodPost, "/statusstore/v1/pods/"+string(uid)+"/finished", nil, nil); err != nil {
		t.Fatal(err)
	}
}

// agentStatus is GET /statusstore/v1/status, as far as the tests look.
type agentStatus struct {
	Node                string `json:"node"`
	Epoch               int64  `json:"epoch"`
	HeadSequence        int64  `json:"headSequence"`
	Pods                int    `json:"pods"`
	Pending             int    `json:"pending"`
	AckedVersionsBehind int64  `json:"ackedVersionsBehind"`
	Failing             int    `json:"failing"`
	JournalBytes        int64  `json:"journalBytes"`
	LastSyncError       string `json:"lastSyncError"`
	Degraded            bool   `json:"degraded"`
}

func (c *socketClient) status(t *testing.T) agentStatus {
	t.Helper()
	var s agentStatus
	if _, err := c.do(http.MethodGet, "/statusstore/v1/status", nil, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// podRecord is one element of GET /statusstore/v1/pods.
type podRecord struct {
	UID          types.UID `json:"uid"`
	Namespace    string    `json:"namespace"`
	Name         string    `json:"name"`
	Version      int64     `json:"version"`
	AckedVersion int64     `json:"ackedVersion"`
	Sequence     int64     `json:"sequence"`
	State        string    `json:"state"`
	LastError    string    `json:"lastError"`
}

// records returns all pods that the agent has, by UID.
func (c *socketClient) records(t *testing.T) map[types.UID]podRecord {
	t.Helper()
	var list struct {
		Pods []podRecord `json:"pods"`
	}
	if _, err := c.do(http.MethodGet, "/statusstore/v1/pods", nil, &list); err != nil {
		t.Fatal(err)
	}
	byUID := make(map[types.UID]podRecord, len(list.Pods))
	for _, r := range list.Pods {
		byUID[r.UID] = r
	}
	return byUID
}

func podPath(pod *v1.Pod) string {
	return "/api/v1/namespaces/" + pod.Namespace + "/pods/" + pod.Name
}

// withKind returns the pod as a manifest.
func withKind(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	return pod
}
