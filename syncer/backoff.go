// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"math/rand/v2"
	"time"
)

// backoff doubles from base to max.
type backoff struct {
	base, max time.Duration
}

// after returns the wait after so many attempts that went wrong, with jitter.
func (b backoff) after(attempts int) time.Duration {
	d := b.base
	for range attempts - 1 {
		if d >= b.max {
			break
		}
		d *= 2
	}
	return jitter(min(d, b.max))
}

// jitter spreads a wait by ±10 %, so that pods that failed together don't come
// back together.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*rand.Float64()))
}
