// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	tests := []struct{ in, want string }{
		{"2h", "2026-01-31T10:00:00Z"}, {"-90m", "2026-01-31T10:30:00Z"}, {"3d", "2026-01-28T12:00:00Z"}, {"1d12h", "2026-01-30T00:00:00Z"},
		{"now", "2026-01-31T12:00:00Z"}, {"2026-01-02", "2026-01-02T00:00:00Z"}, {"2026-01-02T03:04", "2026-01-02T03:04:00Z"},
		{"2026-01-02T03:04:05.5+01:00", "2026-01-02T02:04:05.5Z"}, {"2026-01-02 03:04:05", "2026-01-02T03:04:05Z"},
		{"", ""}, {"2", ""}, {"d", ""}, {"--2h", ""}, {"tomorrow", ""}, {"99999d", ""},
	}
	for _, tt := range tests {
		got, err := clock{time.UTC}.parseTime(tt.in, now)
		if tt.want == "" {
			if err == nil {
				t.Errorf("parseTime(%q): got %v, want an error", tt.in, got)
			}
			continue
		}
		if err != nil || got.Format(time.RFC3339Nano) != tt.want {
			t.Errorf("parseTime(%q): got %v, %v; want %s", tt.in, got, err, tt.want)
		}
	}
}
