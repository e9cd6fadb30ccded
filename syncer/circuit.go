// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// circuitPods is how many different pods must fail, with no success in
	// between, before the server is taken for dead. A single hanging or broken
	// pod, or two, must not stop the others (G11).
	circuitPods = 3
	// probeInterval is the time between probes of a dead server.
	probeInterval = time.Second
	// probePause keeps probes apart that turned out to need no request.
	probePause = 50 * time.Millisecond
)

// circuit stands between the pods and a dead server. While it is open, pods are
// parked and one a second is let through; the first success lets all go.
type circuit struct {
	wake chan struct{} // readable (capacity 1) when a pod was parked

	// mu guards the fields below.
	mu        sync.Mutex
	open      bool
	next      time.Time // of the next probe
	succeeded time.Time // last success
	failed    map[types.UID]struct{}
	parked    map[types.UID]struct{}
	// Order of probes: pods that didn't fail in this outage first, so that a pod
	// which hangs by itself doesn't hold up the proof that the server lives.
	fresh, tried []types.UID
}

func newCircuit() *circuit {
	return &circuit{
		wake:   make(chan struct{}, 1),
		failed: make(map[types.UID]struct{}),
		parked: make(map[types.UID]struct{}),
	}
}

// admit reports whether a request may be sent now. If not, the pod is parked.
func (c *circuit) admit(uid types.UID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open {
		return true
	}
	if !now.Before(c.next) {
		c.next = now.Add(jitter(probeInterval))
		return true
	}
	if _, ok := c.parked[uid]; ok {
		return false
	}
	c.parked[uid] = struct{}{}
	if _, ok := c.failed[uid]; ok {
		c.tried = append(c.tried, uid)
	} else {
		c.fresh = append(c.fresh, uid)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return false
}

// success tells that the server answered, whatever it said. If the circuit was
// open, it returns all pods that were parked or failed meanwhile, and when the
// success before this one was.
func (c *circuit) success(now time.Time) (released []types.UID, before time.Time, reopened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, c.succeeded = c.succeeded, now
	if !c.open {
		if len(c.failed) > 0 {
			clear(c.failed)
		}
		return nil, before, false
	}
	released = append(c.fresh, c.tried...)
	for uid := range c.failed {
		if _, ok := c.parked[uid]; !ok {
			released = append(released, uid)
		}
	}
	c.open, c.fresh, c.tried = false, nil, nil
	clear(c.parked)
	clear(c.failed)
	return released, before, true
}

// failure tells that a pod's requests have been failing for the server's fault,
// the first of them sent at since. It reports whether that opened the circuit. If
// anything succeeded meanwhile, the server lives, and the trouble is the pod's own.
func (c *circuit) failure(uid types.UID, f fault, since, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.succeeded.After(since) {
		return false
	}
	c.failed[uid] = struct{}{}
	if c.open || f != faultDead && len(c.failed) < circuitPods {
		return false
	}
	c.open = true
	c.next = now.Add(jitter(probeInterval))
	return true
}

// aliveSince reports whether another request succeeded after t: then a failing
// pod has a problem of its own.
func (c *circuit) aliveSince(t time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.succeeded.After(t)
}

// untilProbe returns how long to wait for the next probe; false if none is due
// until wake.
func (c *circuit) untilProbe(now time.Time) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open || len(c.parked) == 0 {
		return 0, false
	}
	return max(c.next.Sub(now), probePause), true
}

// unpark takes the pod that should probe next.
func (c *circuit) unpark() (types.UID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := &c.fresh
	if len(*from) == 0 {
		from = &c.tried
	}
	if len(*from) == 0 {
		return "", false
	}
	uid := (*from)[0]
	*from = (*from)[1:]
	delete(c.parked, uid)
	return uid, true
}

// state returns whether the circuit is open and how many pods are parked.
func (c *circuit) state() (open bool, parked int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open, len(c.parked)
}
