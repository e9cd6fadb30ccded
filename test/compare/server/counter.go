// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"
)

// counter counts a client's requests by verb where they leave it, and can make
// those about one pod hang.
type counter struct {
	next http.RoundTripper
	hung string // pod whose requests hang until their context ends; empty: none

	mu     sync.Mutex // guards the fields below
	counts map[string]int
	open   int       // requests without answer
	last   time.Time // last answer, or failure, of anything but a WATCH
	sent   time.Time // last request of any kind
}

func newCounter(hung string) *counter { return &counter{hung: hung, counts: map[string]int{}} }

func (c *counter) wrap(next http.RoundTripper) http.RoundTripper {
	c.next = next
	return c
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	verb := verbOf(r)
	c.mu.Lock()
	c.counts[verb]++
	c.open++
	c.sent = time.Now()
	c.mu.Unlock()
	var resp *http.Response
	var err error
	if c.hung != "" && strings.Contains(r.URL.Path, "/pods/"+c.hung) {
		<-r.Context().Done()
		err = context.Cause(r.Context())
	} else {
		resp, err = c.next.RoundTrip(r)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if verb != "WATCH" {
		c.last = time.Now()
	}
	return resp, err
}

func verbOf(r *http.Request) string {
	if r.Method != http.MethodGet {
		return r.Method
	}
	if v := r.URL.Query().Get("watch"); v == "true" || v == "1" {
		return "WATCH"
	}
	if strings.HasSuffix(r.URL.Path, "/pods") {
		return "LIST"
	}
	return http.MethodGet
}

// snapshot returns the counts so far.
func (c *counter) snapshot() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// quiet waits until nothing was sent for a while and everything is answered. It
// returns when the last answer came.
func (c *counter) quiet(ctx context.Context, since time.Time, d time.Duration) (time.Time, error) {
	for {
		c.mu.Lock()
		open, last, sent := c.open, c.last, c.sent
		c.mu.Unlock()
		from := since
		for _, t := range []time.Time{last, sent} {
			if t.After(from) {
				from = t
			}
		}
		left := d - time.Since(from)
		if open == 0 && left <= 0 {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, context.Cause(ctx)
		case <-time.After(max(left, 10*time.Millisecond)):
		}
	}
}

// minus returns what was counted after an earlier snapshot.
func minus(now, before map[string]int) map[string]int {
	diff := map[string]int{}
	for verb, n := range now {
		if n -= before[verb]; n != 0 {
			diff[verb] = n
		}
	}
	return diff
}
