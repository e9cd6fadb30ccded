// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/statusstore/statusstore/internal/dump/scan"
)

// The terminal's timeline: a column is a span of time, a row a pod.
const (
	defaultWidth = 80
	minBars      = 20
	maxNameWidth = 32
	yellow       = "\x1b[33m"
	blue         = "\x1b[34m"
)

const timelineLegend = "█ ready  ▒ running, not ready  ░ pending  ─ succeeded  ✗ failed  R restart  x refused  | agent start  ! after an unclean stop"

// cell is one column of one row.
type cell struct {
	char   rune
	colour string
}

func (s laneState) cell() cell {
	switch {
	case s.phase == phaseAbsent:
		return cell{' ', ""}
	case s.phase == phasePending:
		return cell{'░', blue}
	case s.phase == phaseRunning && s.ready == scan.Ready:
		return cell{'█', green}
	case s.phase == phaseSucceeded:
		return cell{'─', ""}
	case s.phase == phaseFailed:
		return cell{'✗', red}
	default:
		return cell{'▒', yellow}
	}
}

// draw prints the timeline as wide as the terminal.
func (t *timeline) draw(out *output, clock clock) error {
	if len(t.pods) == 0 {
		out.line("", "no pods")
		return out.flush()
	}
	names := 3
	for _, l := range t.pods {
		names = max(names, min(utf8.RuneCountInString(l.label()), maxNameWidth))
	}
	width := max(out.width, defaultWidth)
	if out.width > 0 {
		width = out.width
	}
	bars := max(width-names-2, minBars)
	out.line("", fmt.Sprintf("%s to %s, %s a column", clock.format(t.from), clock.format(t.to), span(t.column(bars))))
	out.line("", timelineLegend)
	out.row("agent", names, t.agentRow(bars))
	for _, l := range t.pods {
		out.row(l.label(), names, t.cells(l, bars))
	}
	return out.flush()
}

func (l *lane) label() string { return escape(l.namespace + "/" + l.name) }

func (o *output) row(name string, width int, cells []cell) {
	if n := utf8.RuneCountInString(name); n > width {
		runes := []rune(name)
		name = "…" + string(runes[n-width+1:])
	}
	fmt.Fprintf(o, "%-*s  ", width, name)
	last := len(cells)
	for last > 0 && cells[last-1].char == ' ' {
		last--
	}
	for i := 0; i < last; {
		n := i + 1
		for n < last && cells[n].colour == cells[i].colour {
			n++
		}
		text := make([]rune, 0, n-i)
		for _, c := range cells[i:n] {
			text = append(text, c.char)
		}
		o.paint(cells[i].colour, string(text))
		i = n
	}
	o.WriteByte('\n')
}

// column is the span of one column.
func (t *timeline) column(bars int) time.Duration {
	return max(t.to.Sub(t.from)/time.Duration(bars), 1)
}

func (t *timeline) columnOf(at time.Time, bars int) int {
	return min(max(int(at.Sub(t.from)/t.column(bars)), 0), bars-1)
}

func (t *timeline) agentRow(bars int) []cell {
	cells := slices.Repeat([]cell{{' ', ""}}, bars)
	for _, e := range t.epochs {
		if e.later {
			continue
		}
		c := &cells[t.columnOf(e.at, bars)]
		if e.unclean {
			*c = cell{'!', red}
		} else if c.char != '!' {
			*c = cell{'|', ""}
		}
	}
	return cells
}

// cells are the states at the end of each column; marks of what happened inside
// come before.
func (t *timeline) cells(l *lane, bars int) []cell {
	cells := make([]cell, bars)
	state, next := l.start.cell(), 0
	for i := range cells {
		var mark rune
		worst := state
		for next < len(l.moments) && t.columnOf(l.moments[next].at, bars) <= i { // before i: the clock was set back
			m := &l.moments[next]
			state = m.state.cell()
			if !m.at.After(t.from) { // what was before is not in the picture
				worst = state
			}
			if state.char == '▒' { // short losses of readiness are what one looks for
				worst = state
			}
			switch {
			case m.restart:
				mark = 'R'
			case m.kind == "rejected" && mark == 0:
				mark = 'x'
			}
			next++
		}
		cells[i] = state
		if worst.char == '▒' {
			cells[i] = worst
		}
		if mark != 0 {
			cells[i] = cell{mark, red}
		}
	}
	return cells
}
