// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/wire"
	"github.com/statusstore/statusstore/journal"
)

const contentNDJSON = "application/x-ndjson"

// historyLimit is how many of a pod's events are shown, unless the request says
// otherwise.
const historyLimit = 1000

// GET /statusstore/v1/pods/{uid}/history?limit=N
func (a *api) getHistory(w http.ResponseWriter, r *http.Request) error {
	limit, err := parseCount("limit", r.URL.Query().Get("limit"))
	if err != nil {
		return err
	}
	if limit == 0 {
		limit = historyLimit
	}
	uid := types.UID(r.PathValue("uid"))
	if e, ok := a.m.Entry(uid); ok {
		uid = e.UID
	}
	h := History{UID: uid, Events: []wire.Event{}}
	var newest []journal.Event
	for e, err := range a.m.Journal().Events(1, 0) {
		if ctx := r.Context(); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, journal.ErrClosed) || errors.Is(err, journal.ErrDegraded) {
			return err // nothing can be read now, which is not an empty history
		}
		if err != nil || e.UID != uid {
			continue // damage elsewhere does not hide this pod's history
		}
		h.Namespace, h.Name = e.Namespace, e.Name
		newest = append(newest, e)
		if len(newest) > 2*limit {
			newest = append(newest[:0], newest[len(newest)-limit:]...)
			h.Truncated = true
		}
	}
	if len(newest) > limit {
		newest, h.Truncated = newest[len(newest)-limit:], true
	}
	if len(newest) == 0 {
		if _, err := a.entryByUID(r); err != nil {
			return err
		}
	}
	for i := range newest {
		h.Events = append(h.Events, wire.Whole(&newest[i]))
	}
	// The first version that is shown tells whether retention took older ones.
	h.Truncated = h.Truncated || len(newest) > 0 && !newest[0].First
	writeJSON(w, http.StatusOK, h)
	return nil
}

// GET /statusstore/v1/events?from=N&to=N&follow=true
func (a *api) getEvents(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	from, err := parseEventSequence("from", q.Get("from"))
	if err != nil {
		return err
	}
	to, err := parseEventSequence("to", q.Get("to"))
	if err != nil {
		return err
	}
	follow, err := parseBool(q.Get("follow"))
	if err != nil {
		return badRequest("follow: %v", err)
	}
	head, _ := a.m.Journal().Head()
	if from > head+1 {
		return expired("from=%d is beyond the end of the journal, %d: it may have been replaced by an older copy", from, head)
	}
	w.Header().Set("Content-Type", contentNDJSON)
	w.Header().Set(HeaderSequence, resourceVersion(head))
	w.WriteHeader(http.StatusOK)
	if err := flush(w); err != nil {
		return err
	}
	ctx, cancel := a.streamContext(r)
	defer cancel()
	s := &eventStream{a: a, w: w, cursor: max(from, 1) - 1, last: to}
	if follow {
		err = s.follow(ctx)
	} else {
		if s.last == 0 || s.last > head {
			s.last = head
		}
		err = s.send(ctx, s.last)
	}
	if errors.Is(err, errUnreadable) {
		return nil // the last line says so; the client asks again from there
	}
	return err
}

// errUnreadable ends a stream while the journal can't be read.
var errUnreadable = errors.New("events cannot be read now")

func parseEventSequence(name, s string) (journal.Sequence, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, badRequest("%s=%q is not a sequence", name, s)
	}
	return journal.Sequence(n), nil
}

// eventStream writes events as lines of JSON.
type eventStream struct {
	a      *api
	w      http.ResponseWriter
	cursor journal.Sequence // all up to here was written
	last   journal.Sequence // the end; 0 is none
	tail   bool             // a gap from here on is a loss, no trimmed history
}

// follow writes what there is and what comes, until the client leaves.
func (s *eventStream) follow(ctx context.Context) error {
	for {
		head, moved := s.a.m.Journal().Head()
		to := head
		if s.last != 0 {
			to = min(to, s.last)
		}
		if to > s.cursor {
			if err := s.send(ctx, to); err != nil {
				return err
			}
		}
		if s.last != 0 && s.cursor >= s.last {
			return nil
		}
		s.tail = true
		select {
		case <-ctx.Done():
			return nil
		case <-moved:
			if now, _ := s.a.m.Journal().Head(); now == head {
				return nil // the journal was closed
			}
		}
	}
}

func (s *eventStream) send(ctx context.Context, to journal.Sequence) error {
	for e, err := range s.a.m.Journal().Events(s.cursor+1, to) {
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, journal.ErrClosed) {
			return err
		}
		if errors.Is(err, journal.ErrDegraded) {
			return errors.Join(errUnreadable, s.line(wire.Event{Sequence: s.cursor + 1, Error: err.Error()}), flush(s.w))
		}
		if err := s.gap(e.Sequence); err != nil {
			return err
		}
		out := wire.Whole(&e)
		if err != nil {
			out = wire.Event{Sequence: e.Sequence, Error: err.Error()}
		}
		if err := s.line(out); err != nil {
			return err
		}
		s.cursor = e.Sequence
	}
	if err := s.gap(to + 1); err != nil {
		return err
	}
	s.cursor = to
	return flush(s.w)
}

// gap tells a follower of events that were trimmed before it could get them.
func (s *eventStream) gap(next journal.Sequence) error {
	if !s.tail || next <= s.cursor+1 {
		return nil
	}
	return s.line(wire.Event{Sequence: s.cursor + 1, Error: fmt.Sprintf("events %d to %d were trimmed before they were read", s.cursor+1, next-1)})
}

func (s *eventStream) line(e wire.Event) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(e); err != nil {
		return fmt.Errorf("encode event: %w", err)
	}
	_, err := s.w.Write(b.Bytes())
	return err
}
