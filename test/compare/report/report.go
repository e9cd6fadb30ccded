// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is one run of one command.
type Report struct {
	Command  string    `json:"command"`
	Started  time.Time `json:"started"`
	Machine  Machine   `json:"machine"`
	Sections []Section `json:"sections"`
	Targets  []Target  `json:"targets"`
}

// Machine is where the figures are from. Without it they mean nothing.
type Machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Processors int    `json:"processors"`
	Go         string `json:"go"`
	Load       string `json:"load,omitempty"` // /proc/loadavg at the start
}

// Section is one table. A row's cells have the order of Columns.
type Section struct {
	Title   string   `json:"title"`
	Note    string   `json:"note,omitempty"`
	Columns []string `json:"columns"`
	Rows    []Row    `json:"rows"`
}

// Row is a name and its values; NaN is a cell without value.
type Row struct {
	Name   string  `json:"name"`
	Values []Value `json:"values"`
}

// Value is a number whose JSON may be null.
type Value float64

// MarshalJSON writes NaN and infinities as null.
func (v Value) MarshalJSON() ([]byte, error) {
	if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(v), 'g', 6, 64), nil
}

// Bound says which way a target points.
type Bound string

// The bounds.
const (
	AtMost  Bound = "at most"
	AtLeast Bound = "at least"
)

// Target is one promise and what was measured.
type Target struct {
	Name    string `json:"name"`
	Bound   Bound  `json:"bound"`
	Limit   Value  `json:"limit"`
	Got     Value  `json:"got"`
	Reached bool   `json:"reached"`
}

// New begins a report.
func New(command []string) *Report {
	load, _ := os.ReadFile("/proc/loadavg") // none on other systems
	return &Report{
		Command: strings.Join(command, " "),
		Started: time.Now().UTC().Truncate(time.Second),
		Machine: Machine{
			OS: runtime.GOOS, Arch: runtime.GOARCH, Processors: runtime.GOMAXPROCS(0), Go: runtime.Version(),
			Load: strings.TrimSpace(string(load)),
		},
	}
}

// Section adds a table and returns it to be filled. It is valid until the next call.
func (r *Report) Section(title string, columns ...string) *Section {
	r.Sections = append(r.Sections, Section{Title: title, Columns: columns})
	return &r.Sections[len(r.Sections)-1]
}

// Row adds a row to a table. Missing values stay empty.
func (s *Section) Row(name string, values ...float64) {
	row := Row{Name: name}
	for i := range s.Columns {
		v := math.NaN()
		if i < len(values) {
			v = values[i]
		}
		row.Values = append(row.Values, Value(v))
	}
	s.Rows = append(s.Rows, row)
}

// Target notes a promise. A value that could not be measured reaches nothing.
func (r *Report) Target(name string, bound Bound, limit, got float64) {
	reached := bound == AtMost && got <= limit || bound == AtLeast && got >= limit
	r.Targets = append(r.Targets, Target{Name: name, Bound: bound, Limit: Value(limit), Got: Value(got), Reached: reached})
}

// Missed returns the targets that were not reached.
func (r *Report) Missed() []Target {
	return slices.DeleteFunc(slices.Clone(r.Targets), func(t Target) bool { return t.Reached })
}

// WriteText prints tables and targets.
func (r *Report) WriteText(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "%s\n%s, %s/%s, %d processors, %s, load %s\n", r.Command, r.Started.Format(time.RFC3339), m.OS, m.Arch, m.Processors, m.Go, m.Load)
	for _, s := range r.Sections {
		fmt.Fprintf(w, "\n%s\n", s.Title)
		if s.Note != "" {
			fmt.Fprintf(w, "(%s)\n", s.Note)
		}
		tw := tabwriter.NewWriter(w, 2, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(tw, "\t%s\t\n", strings.Join(s.Columns, "\t"))
		for _, row := range s.Rows {
			fmt.Fprintf(tw, "%s\t", row.Name)
			for _, v := range row.Values {
				fmt.Fprintf(tw, "%s\t", number(float64(v)))
			}
			fmt.Fprintln(tw)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if len(r.Targets) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\ntargets\n")
	tw := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	for _, t := range r.Targets {
		verdict := "reached"
		if !t.Reached {
			verdict = "MISSED"
		}
		fmt.Fprintf(tw, "  %s\t%s\t%s %s\tgot %s\n", verdict, t.Name, t.Bound, number(float64(t.Limit)), number(float64(t.Got)))
	}
	return tw.Flush()
}

// WriteJSON prints all of it as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// number has three significant digits, and no fraction from 100 on.
func number(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case v == math.Trunc(v) || abs >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case abs >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// Median of no values is NaN. The argument is sorted afterwards.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile of no values is NaN. The argument is sorted afterwards.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}
