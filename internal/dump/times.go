// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"strconv"
	"strings"
	"time"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// layouts of times that are given; without a zone they are UTC.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly}

// parseTime reads a time, or a duration that lies back from now, such as 2h, 90m
// or 3d.
func parseTime(s string, now time.Time) (time.Time, error) {
	if s == "now" {
		return now, nil
	}
	if d, ok := parseDuration(strings.TrimPrefix(s, "-")); ok {
		return now.Add(-d), nil
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, usagef("time %q: want RFC 3339, such as 2026-01-31T15:04:05Z, or a duration back from now, such as 2h", s)
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

// parsePoint reads a place in the history: a sequence, or a time.
func parsePoint(s string, now time.Time) (projection.Point, error) {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		if n == 0 {
			return projection.Point{}, usagef("sequence 0: the first is 1")
		}
		return projection.Point{Sequence: journal.Sequence(n)}, nil
	}
	t, err := parseTime(s, now)
	return projection.Point{Time: t}, err
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
