// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Request is one request that reached the server.
type Request struct {
	Verb        Verb
	Method      string
	Path        string
	Query       string // without the question mark
	Namespace   string
	Name        string
	Subresource string
	ContentType string
	UserAgent   string
	Body        []byte // as sent: JSON or protobuf
	At          time.Time
	Code        int // 0: not answered (yet), by a hang or a broken connection
}

// loggedRequest is a request in the log. All but request.Code is constant.
type loggedRequest struct {
	request Request
	target  target
}

// requestLog has the newest requests in the order of their arrival.
type requestLog struct {
	limit int

	// mu guards the fields below and the codes in log.
	mu      sync.Mutex
	log     []*loggedRequest
	counts  map[Verb]int
	dropped int
}

func (l *requestLog) started(r *http.Request, t target, body []byte) *loggedRequest {
	logged := &loggedRequest{target: t, request: Request{
		Verb:        t.verb,
		Method:      r.Method,
		Path:        r.URL.Path,
		Query:       r.URL.RawQuery,
		Namespace:   t.namespace,
		Name:        t.name,
		Subresource: t.subresource,
		ContentType: r.Header.Get("Content-Type"),
		UserAgent:   r.UserAgent(),
		Body:        body,
		At:          time.Now(),
	}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[t.verb]++
	l.log = append(l.log, logged)
	// Drop in bulk, as the event window does.
	if len(l.log) >= 2*l.limit {
		l.dropped += len(l.log) - l.limit
		l.log = slices.Clone(l.log[len(l.log)-l.limit:])
	}
	return logged
}

func (l *requestLog) answered(logged *loggedRequest, code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	logged.request.Code = code
}

// Requests returns the logged requests that match, in the order of their
// arrival. The log is limited by Options.RequestLog.
func (s *Server) Requests(match Match) []Request {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	var found []Request
	for _, logged := range s.requests.log {
		if match.matches(logged.target, logged.request.UserAgent) {
			request := logged.request
			request.Body = bytes.Clone(request.Body)
			found = append(found, request)
		}
	}
	return found
}

// Count returns how many requests with one of these verbs arrived since the
// start or the last ResetRequests; without verbs, all that are about pods. It
// is exact even if the log has dropped some.
func (s *Server) Count(verbs ...Verb) int {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	total := 0
	for verb, n := range s.requests.counts {
		if slices.Contains(verbs, verb) || len(verbs) == 0 && verb != Discovery {
			total += n
		}
	}
	return total
}

// Dropped returns how many requests the log has lost to its limit.
func (s *Server) Dropped() int {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return s.requests.dropped
}

// ResetRequests empties the log and sets the counts to zero.
func (s *Server) ResetRequests() {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	s.requests.log, s.requests.counts, s.requests.dropped = nil, map[Verb]int{}, 0
}

// StatusChange is a status that a client wrote and that differed from the one
// before.
type StatusChange struct {
	At              time.Time
	UserAgent       string
	ResourceVersion string
	Status          corev1.PodStatus
}

// StatusHistory returns the statuses that clients wrote for the pod with this
// UID, oldest first, also after the pod is gone. Changes behind the client's
// back are not among them. It is limited by Options.StatusLog.
func (s *Server) StatusHistory(uid types.UID) []StatusChange {
	s.store.mu.RLock()
	records := s.store.history[uid]
	s.store.mu.RUnlock()
	changes := make([]StatusChange, len(records))
	for i, record := range records {
		changes[i] = StatusChange{
			At:              record.at,
			UserAgent:       record.userAgent,
			ResourceVersion: record.pod.ResourceVersion,
			Status:          *record.pod.Status.DeepCopy(),
		}
	}
	return changes
}
