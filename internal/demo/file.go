// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// readFile reads a journal that no agent has open.
func readFile(path string) (d onDisk, err error) {
	r, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if err != nil {
		return onDisk{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	acks, err := r.Acks()
	if err != nil {
		return onDisk{}, err
	}
	d = onDisk{
		versions: make(map[types.UID]journal.Version),
		acked:    make(map[types.UID]journal.Version, len(acks)),
		statuses: make(map[types.UID]*v1.PodStatus),
	}
	for uid, ack := range acks {
		d.acked[uid] = ack.Version
	}
	for event, err := range r.Newest() {
		if err != nil {
			return onDisk{}, err
		}
		status, err := podstatus.Decode(event.Status)
		if err != nil {
			return onDisk{}, fmt.Errorf("sequence %d: %w", event.Sequence, err)
		}
		d.versions[event.UID], d.statuses[event.UID] = event.Version, status
	}
	return d, nil
}

// readCopy reads a copy of the running agent's journal.
func (s *scenario) readCopy(ctx context.Context) (d onDisk, err error) {
	f, err := os.CreateTemp(s.tempDir, "copy-")
	if err != nil {
		return onDisk{}, fmt.Errorf("copy the journal: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	err = s.agent.client.Snapshot(ctx, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return onDisk{}, err
	}
	return readFile(f.Name())
}

// errSlow: a condition did not come true in time.
var errSlow = errors.New("not in time")

// poll asks until ready says yes or fails, at most for timeout.
func poll(ctx context.Context, timeout time.Duration, ready func() (bool, error)) error {
	const interval = 10 * time.Millisecond
	deadline := time.Now().Add(timeout)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		ok, err := ready()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errSlow
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}
