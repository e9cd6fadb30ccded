// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"log/slog"
	"sync"
	"time"

	"github.com/statusstore/statusstore/internal/logkey"
)

// keyFields lists fields of a status.
const keyFields = "fields"

// repeatAfter is how often the same trouble is logged ; the first time always.
const repeatAfter = 30 * time.Second

// report logs one kind of trouble: the first time, then at most once per
// repeatAfter with the number of times it was left out.
type report struct {
	logger *slog.Logger

	mu      sync.Mutex
	last    map[string]time.Time
	skipped map[string]int
}

func (r *report) warn(message string, args ...any) {
	now := time.Now()
	r.mu.Lock()
	if r.last == nil {
		r.last, r.skipped = make(map[string]time.Time), make(map[string]int)
	}
	if last, ok := r.last[message]; ok && now.Sub(last) < repeatAfter {
		r.skipped[message]++
		r.mu.Unlock()
		return
	}
	count := r.skipped[message] + 1
	r.last[message], r.skipped[message] = now, 0
	r.mu.Unlock()
	r.logger.Warn(message, append(args, logkey.Count, count)...)
}
