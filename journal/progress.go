// SPDX-License-Identifier: Apache-2.0

package journal

import "context"

type progressKey struct{}

// WithProgress returns a context with which Verify, Salvage, Compact, Snapshot and
// SnapshotFile say how far they have come: report gets the bytes done and the bytes
// to do in all, an estimate that stays the same for the whole call. done only grows
// and ends at total when the call succeeds. It is called from the goroutine of the
// call, a few hundred times at most.
func WithProgress(ctx context.Context, report func(done, total int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// meter counts the work of one call. Without a report it does nothing.
type meter struct {
	report            func(done, total int64)
	done, last, total int64
}

func newMeter(ctx context.Context, total int64) *meter {
	report, _ := ctx.Value(progressKey{}).(func(done, total int64))
	return &meter{report: report, total: max(total, 1)}
}

func (m *meter) add(n int64) { m.at(m.done + n) }

// within adds n, up to a limit.
func (m *meter) within(n, limit int64) { m.at(min(m.done+n, limit)) }

func (m *meter) at(done int64) {
	m.done = max(m.done, min(done, m.total))
	if m.report != nil && m.done > m.last && (m.done-m.last >= m.total/200 || m.done == m.total) {
		m.last = m.done
		m.report(m.done, m.total)
	}
}

// part returns the context for an inner call that is the next span of the work.
func (m *meter) part(ctx context.Context, span int64) context.Context {
	from := m.done
	return WithProgress(ctx, func(done, total int64) { m.at(from + int64(float64(span)*float64(done)/float64(total))) })
}
