// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// answerTimeout bounds the wait for the first byte, stallTimeout that for any
	// further one of a snapshot. The agent copies its journal before it answers.
	answerTimeout = 60 * time.Second
	stallTimeout  = 30 * time.Second
	// maxLine bounds one event of the stream; a status has at most 4 MiB.
	maxLine = 32 << 20
	// maxRecordsBytes bounds the list of pods.
	maxRecordsBytes = 64 << 20
	// snapshotTries: the agent makes one snapshot at a time and sends others away.
	snapshotTries = 5
)

// agent talks to a running agent over its socket.
type agent struct {
	socket string
	client *http.Client
}

func newAgent(socket string) *agent {
	transport := &http.Transport{
		ResponseHeaderTimeout: answerTimeout,
		DisableKeepAlives:     true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			dialer := net.Dialer{Timeout: 5 * time.Second}
			return dialer.DialContext(ctx, "unix", socket)
		},
	}
	return &agent{socket: socket, client: &http.Client{Transport: transport}}
}

// get returns the answer's body; everything but 200 is an error.
func (a *agent) get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	u := url.URL{Scheme: "http", Host: "agent", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fmt.Errorf("no answer from an agent on socket %s: %w; if none runs, name its data directory instead", a.socket, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, &refusalError{socket: a.socket, code: resp.StatusCode, message: refusal(resp), wait: retryAfter(resp)}
}

// refusalError is an answer other than 200.
type refusalError struct {
	socket  string
	code    int
	message string
	wait    time.Duration // what the agent asks to wait before another try
}

func (e *refusalError) Error() string {
	return fmt.Sprintf("agent on socket %s: %s", e.socket, e.message)
}

// retryAfter is bounded: somebody waits for the answer.
func retryAfter(resp *http.Response) time.Duration {
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return time.Second
	}
	return min(time.Duration(seconds)*time.Second, 10*time.Second)
}

// refusal is what the agent says, which is a metav1.Status.
func refusal(resp *http.Response) string {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		return fmt.Sprintf("%s (%s)", status.Message, resp.Status)
	}
	return resp.Status
}

// snapshot fetches a consistent copy of the live journal into an unlinked file.
func (a *agent) snapshot(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := a.getSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	stall := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("nothing came for %v", stallTimeout)) })
	defer stall.Stop()
	body := &watchedBody{r: resp.Body, seen: func() { stall.Reset(stallTimeout) }}
	f, err := unlinkedCopy(body)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("snapshot from socket %s: %w", a.socket, err)
	}
	if resp.ContentLength >= 0 && body.n != resp.ContentLength {
		return nil, errors.Join(fmt.Errorf("snapshot from socket %s: %d bytes of %d", a.socket, body.n, resp.ContentLength), f.Close())
	}
	return f, nil
}

// getSnapshot waits for its turn.
func (a *agent) getSnapshot(ctx context.Context) (*http.Response, error) {
	for try := 1; ; try++ {
		resp, err := a.get(ctx, "/statusstore/v1/snapshot", nil)
		refused, ok := errors.AsType[*refusalError](err)
		if !ok || refused.code != http.StatusTooManyRequests || try == snapshotTries {
			return resp, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(refused.wait):
		}
	}
}

// watchedBody counts, and tells of each read that brought something.
type watchedBody struct {
	r    io.Reader
	n    int64
	seen func()
}

func (w *watchedBody) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.n += int64(n)
	if n > 0 {
		w.seen()
	}
	return n, err
}

// lastErrors are what the API server answered, by pod, where it refused.
func (a *agent) lastErrors(ctx context.Context) (map[types.UID]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errors.New("the agent takes too long"))
	defer cancel()
	resp, err := a.get(ctx, "/statusstore/v1/pods", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var list struct {
		Pods []struct {
			UID       types.UID `json:"uid"`
			LastError string    `json:"lastError"`
		} `json:"pods"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxRecordsBytes)).Decode(&list); err != nil {
		return nil, fmt.Errorf("pods from socket %s: %w", a.socket, err)
	}
	refused := map[types.UID]string{}
	for _, p := range list.Pods {
		if p.LastError != "" {
			refused[p.UID] = p.LastError
		}
	}
	return refused, nil
}
