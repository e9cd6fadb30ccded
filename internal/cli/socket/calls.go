// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/internal/wire"
	"github.com/statusstore/statusstore/journal"
)

// Stored is where a pod's status stands.
type Stored struct {
	Pod          *v1.Pod // as stored
	Version      journal.Version
	AckedVersion journal.Version
	Sequence     journal.Sequence
}

// SetStatus stores the status of pod. A nil error means that it is durable.
func (c *Client) SetStatus(ctx context.Context, pod *v1.Pod) (Stored, error) {
	body := pod.DeepCopy()
	body.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("Pod"))
	return c.stored(ctx, http.MethodPut, httpapi.PodStatusPath(pod.Namespace, pod.Name), body)
}

// Pod returns the pod of that name: of several, the one that changed last.
func (c *Client) Pod(ctx context.Context, namespace, name string) (Stored, error) {
	return c.stored(ctx, http.MethodGet, httpapi.PodPath(namespace, name), nil)
}

func (c *Client) stored(ctx context.Context, method, path string, body any) (Stored, error) {
	s := Stored{Pod: &v1.Pod{}}
	header, err := c.call(ctx, method, path, body, s.Pod)
	if err != nil {
		return Stored{}, err
	}
	var numbers [3]uint64
	for i, name := range []string{httpapi.HeaderVersion, httpapi.HeaderAckedVersion, httpapi.HeaderSequence} {
		if numbers[i], err = counter(header, name); err != nil {
			return Stored{}, err
		}
	}
	s.Version, s.AckedVersion = journal.Version(numbers[0]), journal.Version(numbers[1])
	s.Sequence = journal.Sequence(numbers[2])
	return s, nil
}

// SetReadiness says whether a container, by its full ID, is ready.
func (c *Client) SetReadiness(ctx context.Context, uid types.UID, containerID string, ready bool) (httpapi.CallResult, error) {
	return c.callPod(ctx, httpapi.ReadinessPath(uid), httpapi.ReadinessRequest{ContainerID: containerID, Ready: &ready})
}

// SetStartup says whether a container, by its full ID, has started.
func (c *Client) SetStartup(ctx context.Context, uid types.UID, containerID string, started bool) (httpapi.CallResult, error) {
	return c.callPod(ctx, httpapi.StartupPath(uid), httpapi.StartupRequest{ContainerID: containerID, Started: &started})
}

// Terminate says that the pod's containers have ended for good.
func (c *Client) Terminate(ctx context.Context, uid types.UID) (httpapi.CallResult, error) {
	return c.callPod(ctx, httpapi.TerminatePath(uid), nil)
}

// Finish says that the pod's resources are reclaimed.
func (c *Client) Finish(ctx context.Context, uid types.UID) (httpapi.CallResult, error) {
	return c.callPod(ctx, httpapi.FinishedPath(uid), nil)
}

func (c *Client) callPod(ctx context.Context, path string, body any) (httpapi.CallResult, error) {
	var result httpapi.CallResult
	_, err := c.call(ctx, http.MethodPost, path, body, &result)
	return result, err
}

// Retain drops all pods but these and returns the UIDs of those dropped.
func (c *Client) Retain(ctx context.Context, uids []types.UID) ([]types.UID, error) {
	var result httpapi.RetainResult
	_, err := c.call(ctx, http.MethodPost, httpapi.PathRetain, httpapi.RetainRequest{UIDs: &uids}, &result)
	return result.Removed, err
}

// Status returns the state of the agent.
func (c *Client) Status(ctx context.Context) (httpapi.Status, error) {
	var status httpapi.Status
	_, err := c.call(ctx, http.MethodGet, httpapi.PathStatus, nil, &status)
	return status, err
}

// Records returns what is stored about each pod, statuses aside.
func (c *Client) Records(ctx context.Context) ([]httpapi.PodRecord, error) {
	var list httpapi.PodRecordList
	_, err := c.call(ctx, http.MethodGet, httpapi.PathPods, nil, &list)
	return list.Pods, err
}

// Events returns the events from a sequence up to the newest one.
func (c *Client) Events(ctx context.Context, from journal.Sequence) iter.Seq2[wire.Event, error] {
	return func(yield func(wire.Event, error) bool) {
		query := url.Values{"from": {strconv.FormatUint(uint64(from), 10)}}
		resp, err := c.Open(ctx, httpapi.PathEvents, query, contentJSON)
		if err != nil {
			yield(wire.Event{}, err)
			return
		}
		defer resp.Body.Close()
		for dec := json.NewDecoder(bufio.NewReaderSize(resp.Body, 64<<10)); ; {
			var event wire.Event
			err := dec.Decode(&event)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				err = fmt.Errorf("read events: %w", err)
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// Snapshot copies the agent's journal to w.
func (c *Client) Snapshot(ctx context.Context, w io.Writer) error {
	resp, err := c.Open(ctx, httpapi.PathSnapshot, nil, "*/*")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, err := io.Copy(w, resp.Body)
	if err == nil && resp.ContentLength >= 0 && n != resp.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("receive snapshot: %w", err)
	}
	return nil
}
