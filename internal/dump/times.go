// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// layouts of times that are given; those without a zone are in the clock's.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// parseTime reads a time, or a duration that lies back from now, such as 2h, 90m
// or 3d. A minus before it, which journalctl wants, changes nothing.
func (c clock) parseTime(s string, now time.Time) (time.Time, error) {
	if s == "now" {
		return now, nil
	}
	if d, ok := parseDuration(strings.TrimPrefix(s, "-")); ok {
		return now.Add(-d), nil
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, s, c.zone); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, usagef("time %q: want RFC 3339, such as 2026-01-31T15:04:05Z, a duration back from now, such as 2h, a sequence, such as 1200, or epoch:N", s)
}

// parseDuration knows days too, which time.ParseDuration doesn't.
func parseDuration(s string) (time.Duration, bool) {
	if days, rest, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		d, good := parseDuration(rest)
		return time.Duration(n)*24*time.Hour + d, err == nil && (good || rest == "")
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0 && s != "0"
}

// point is a place in the history as it is typed. At most one field is set.
type point struct {
	sequence journal.Sequence
	epoch    journal.Epoch
	time     time.Time
}

// epochPrefix begins a point that is the start of an epoch.
const epochPrefix = "epoch:"

// parsePoint reads a place in the history: a sequence, an epoch, or a time.
func (c clock) parsePoint(s string, now time.Time) (point, error) {
	if number, ok := strings.CutPrefix(s, epochPrefix); ok {
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || n == 0 {
			return point{}, usagef("%q: want %sN with a number from 1", s, epochPrefix)
		}
		return point{epoch: journal.Epoch(n)}, nil
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		if n == 0 {
			return point{}, usagef("sequence 0: the first is 1")
		}
		return point{sequence: journal.Sequence(n)}, nil
	}
	t, err := c.parseTime(s, now)
	return point{time: t}, err
}

// resolve finds where in this journal a point is. The start of an epoch is its
// first event that is kept.
func (s *session) resolve(ctx context.Context, p point) (projection.Point, error) {
	if p.epoch == 0 {
		return projection.Point{Sequence: p.sequence, Time: p.time}, nil
	}
	first, err := s.startOf(ctx, p.epoch)
	return projection.Point{Sequence: first}, err
}

// clock prints times in the zone that was asked for.
type clock struct{ zone *time.Location }

func (c clock) format(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(c.zone).Format("2006-01-02T15:04:05.000Z07:00")
}

// span prints a duration with the precision that a reader cares for.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	default:
		return strconv.Itoa(int(d/(24*time.Hour))) + "d" + (d % (24 * time.Hour)).Round(time.Hour).String()
	}
}
