// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// ErrBroken: a promise did not hold.
var ErrBroken = errors.New("guarantee broken")

// Err is nil if all promises held.
func (r *Report) Err() error {
	if len(r.Broken) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrBroken, strings.Join(r.Broken, "; "))
}

// Print writes the report as a table.
func (r *Report) Print(w io.Writer) error {
	converged := "no"
	if r.Converged > 0 {
		converged = fmt.Sprintf("%.1fs", r.Converged.Seconds())
	}
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for _, row := range []struct{ what, value, note string }{
		{"accepted", fmt.Sprint(r.Accepted), "statuses answered with 200 before the agent was killed"},
		{"journalled", fmt.Sprint(r.Journaled), "statuses in the journal after that"},
		{"lost", fmt.Sprint(r.Lost), "must be 0"},
		{"re-sent", fmt.Sprint(r.Resent), "sent again although acked; must be 0"},
		{"acks lost", fmt.Sprint(r.AcksLost), "forgotten by a crash; must be 0"},
		{"requests", verbText(r.Requests), fmt.Sprintf("after the restart, with news of %d pods", r.Patched)},
		{"requests", verbText(r.Idle), "after another crash, with no news"},
		{"converged", converged, "after the network was back"},
		{"differing", fmt.Sprint(r.Differing), "pods on the API server; must be 0"},
	} {
		fmt.Fprintf(t, "%s\t%s\t%s\n", row.what, row.value, row.note)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if r.DataDir == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nThe journal is kept; look into it with: journal-dump events %s\n", r.DataDir)
	return err
}
