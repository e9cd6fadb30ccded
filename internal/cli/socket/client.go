// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// requestTimeout bounds a request that has one short answer. A commit on a
	// busy disk takes a second at the worst; what takes longer is stuck.
	requestTimeout = 30 * time.Second
	// maxAnswerBytes bounds an answer that is read whole.
	maxAnswerBytes = 1 << 30

	contentJSON = "application/json"
)

// Client speaks HTTP over an agent's unix socket.
type Client struct {
	path string
	http *http.Client
}

// New returns a client for the socket at path. It does no I/O.
func New(path string) *Client {
	c := &Client{path: path}
	c.http = &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx) },
		MaxIdleConnsPerHost: 64,
	}}
	return c
}

// Path returns the path of the socket.
func (c *Client) Path() string { return c.path }

// Transport returns what carries the client's requests, for a proxy.
func (c *Client) Transport() http.RoundTripper { return c.http.Transport }

// Close gives up idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Dial connects to the socket. It fails with *NotRunningError.
func (c *Client) Dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.path)
	if err != nil {
		return nil, &NotRunningError{Path: c.path, Err: err}
	}
	return conn, nil
}

// Open sends a GET request and returns the answer, whose body the caller closes.
// The request lasts as long as ctx. An answer outside of 2xx is an error.
func (c *Client) Open(ctx context.Context, path string, query url.Values, accept string) (*http.Response, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return c.send(ctx, http.MethodGet, path, accept, nil)
}

// Get sends a GET request and returns the whole answer.
func (c *Client) Get(ctx context.Context, path string, query url.Values, accept string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, errTimeout)
	defer cancel()
	resp, err := c.Open(ctx, path, query, accept)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return readAll(resp.Body)
}

var errTimeout = fmt.Errorf("no answer after %s", requestTimeout)

// call sends in as JSON, if not nil, and decodes the answer into out, if not nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) (http.Header, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, errTimeout)
	defer cancel()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
	}
	resp, err := c.send(ctx, method, path, contentJSON, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := readAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			return nil, fmt.Errorf("decode answer to %s %s: %w", method, path, err)
		}
	}
	return resp.Header, nil
}

func (c *Client) send(ctx context.Context, method, path, accept string, body []byte) (*http.Response, error) {
	// A nil *bytes.Reader in the io.Reader would count as a body.
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://statusstore"+path, reader)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", accept)
	if body != nil {
		req.Header.Set("Content-Type", contentJSON)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, plain(ctx, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, refusal(resp)
	}
	return resp, nil
}

// plain takes the URL out of an error of net/http: it has a host that isn't there.
func plain(ctx context.Context, err error) error {
	if notRunning, ok := errors.AsType[*NotRunningError](err); ok {
		return notRunning
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the agent ended before it answered: %w", err)
	}
	return err
}

// refusal makes an error of an answer outside of 2xx.
func refusal(resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%s: %w", resp.Status, err)
	}
	var status metav1.Status
	if err := json.Unmarshal(data, &status); err != nil || status.Kind != "Status" {
		status = metav1.Status{
			Status: metav1.StatusFailure, Code: int32(resp.StatusCode),
			Message: fmt.Sprintf("%s: %.200s", resp.Status, bytes.TrimSpace(data)),
		}
	}
	return apierrors.FromObject(&status)
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxAnswerBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if len(data) > maxAnswerBytes {
		return nil, fmt.Errorf("read answer: more than %d bytes", maxAnswerBytes)
	}
	return data, nil
}

// counter reads a header that holds a number.
func counter(h http.Header, name string) (uint64, error) {
	n, err := strconv.ParseUint(h.Get(name), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("answer without a proper %s: %w", name, err)
	}
	return n, nil
}
