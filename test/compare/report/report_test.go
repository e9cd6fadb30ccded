// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestQuantile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for _, tt := range []struct{ q, want float64 }{{0, 1}, {0.5, 3}, {0.99, 5}, {1, 5}} {
		if got := Quantile(values, tt.q); got != tt.want {
			t.Errorf("Quantile(%v): got %v, want %v", tt.q, got, tt.want)
		}
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("Median of nothing: got %v, want NaN", got)
	}
}

func TestTarget(t *testing.T) {
	tests := []struct {
		name       string
		bound      Bound
		limit, got float64
		want       bool
	}{
		{"below a ceiling", AtMost, 2, 1.9, true},
		{"on a ceiling", AtMost, 0, 0, true},
		{"above a ceiling", AtMost, 2, 2.1, false},
		{"above a floor", AtLeast, 14, 15, true},
		{"below a floor", AtLeast, 14, 13, false},
		{"not measured", AtMost, 2, math.NaN(), false},
		{"never", AtMost, 2, math.Inf(1), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := New(nil)
			r.Target(tt.name, tt.bound, tt.limit, tt.got)
			if got := r.Targets[0].Reached; got != tt.want {
				t.Errorf("reached: got %v, want %v", got, tt.want)
			}
			if got := len(r.Missed()) == 0; got != tt.want {
				t.Errorf("nothing missed: got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestReport_TextAndJSON(t *testing.T) {
	r := New([]string{"compare", "test"})
	s := r.Section("times", "µs", "ratio")
	s.Row("stock", 1234.5, 1)
	s.Row("ours", 12.34) // the ratio is not there
	r.Target("ratio", AtMost, 0.5, math.NaN())
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"compare test", "times", "1234", "12.3", "MISSED", "got -"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text lacks %q:\n%s", want, text.String())
		}
	}
	var data strings.Builder
	if err := r.WriteJSON(&data); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Sections []struct {
			Rows []struct{ Values []*float64 }
		}
		Targets []struct {
			Reached bool
			Got     *float64
		}
	}
	if err := json.Unmarshal([]byte(data.String()), &back); err != nil {
		t.Fatal(err)
	}
	row := back.Sections[0].Rows[1].Values
	if len(row) != 2 || row[0] == nil || *row[0] != 12.34 || row[1] != nil {
		t.Errorf("second row: got %v, want 12.34 and null", row)
	}
	if back.Targets[0].Reached || back.Targets[0].Got != nil {
		t.Errorf("target: got %+v, want missed and null", back.Targets[0])
	}
}
