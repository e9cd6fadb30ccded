// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/cli/socket"
	"github.com/statusstore/statusstore/journal"
)

// writers is how many write at the same time. Each pod belongs to one of them.
const writers = 8

// acceptance is a status that was answered with 200.
type acceptance struct {
	uid     types.UID
	version journal.Version
	message string
}

// feed writes statuses and remembers what it was told.
type feed struct {
	started time.Time
	pods    []*v1.Pod

	// mu guards the fields below.
	mu       sync.Mutex
	accepted []acceptance
	last     map[types.UID]socket.Stored // newest accepted one
	sent     map[types.UID]int           // number of the newest one sent, accepted or not
}

func newFeed(pods []*v1.Pod) *feed {
	return &feed{started: time.Now(), pods: pods, last: map[types.UID]socket.Stored{}, sent: map[types.UID]int{}}
}

// next writes the pod's next status.
func (f *feed) next(ctx context.Context, client *socket.Client, pod *v1.Pod) error {
	f.mu.Lock()
	f.sent[pod.UID]++
	n := f.sent[pod.UID]
	f.mu.Unlock()
	stored, err := client.SetStatus(ctx, withStatus(pod, n, f.started))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepted = append(f.accepted, acceptance{pod.UID, stored.Version, message(n)})
	f.last[pod.UID] = stored
	return nil
}

func (f *feed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.accepted)
}

// each calls write for the first n pods from several writers at once, round by
// round until write or the context ends it.
func (f *feed) each(n int, write func(round int, pod *v1.Pod) error) error {
	errs := make([]error, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for round := 0; errs[w] == nil && w < n; round++ {
				for i := w; i < n && errs[w] == nil; i += writers {
					errs[w] = write(round, f.pods[i])
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

var errEnough = errors.New("written enough")

// rounds writes a number of statuses for each pod.
func (f *feed) rounds(ctx context.Context, client *socket.Client, rounds int) error {
	err := f.each(len(f.pods), func(round int, pod *v1.Pod) error {
		if round == rounds {
			return errEnough
		}
		return f.next(ctx, client, pod)
	})
	return onlyOther(err, func(err error) bool { return errors.Is(err, errEnough) })
}

// burst writes to the first n pods until nobody answers any more. A refusal is an
// error; that the agent is gone is not, because it is going to be killed.
func (f *feed) burst(ctx context.Context, client *socket.Client, n int) error {
	err := f.each(n, func(_ int, pod *v1.Pod) error { return f.next(ctx, client, pod) })
	return onlyOther(err, func(err error) bool {
		_, refused := errors.AsType[*apierrors.StatusError](err)
		return !refused
	})
}

// onlyOther returns those of the joined errors that are not as expected.
func onlyOther(err error, expected func(error) bool) error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var other []error
	for _, e := range joined.Unwrap() {
		if !expected(e) {
			other = append(other, e)
		}
	}
	if len(other) > 0 {
		return fmt.Errorf("write statuses: %w", errors.Join(other...))
	}
	return nil
}

// acceptances returns a copy of all so far.
func (f *feed) acceptances() []acceptance {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.accepted)
}

// newest returns the pod's newest accepted status and the number of the newest
// one that was sent.
func (f *feed) newest(uid types.UID) (socket.Stored, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last[uid], f.sent[uid]
}
