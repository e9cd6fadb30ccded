// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/statusstore/statusstore/internal/httpapi"
)

func newStatus(s streams) *cobra.Command {
	var conn connection
	output := newFormat("text", "json")
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what is stored, acked, pending and failing",
		Long:  "Show the state of the agent: what is stored, acked, pending and failing, the size of the journal, and health.",
		Example: `  statusstore status
  statusstore status -o json | jq .pending`,
		Args: wantArgs(cobra.NoArgs, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client := conn.client()
			defer client.Close()
			data, err := client.Get(cmd.Context(), httpapi.PathStatus, nil, "application/json")
			if err != nil {
				return err
			}
			// As the agent sent it: it may know fields that this program doesn't.
			if output.value == "json" {
				return printRawJSON(s.out, data)
			}
			var status httpapi.Status
			if err := json.Unmarshal(data, &status); err != nil {
				return fmt.Errorf("decode answer: %w", err)
			}
			return printStatus(s.out, status, time.Now())
		},
	}
	conn.addFlags(cmd)
	output.addFlag(cmd)
	return cmd
}

func printStatus(w io.Writer, s httpapi.Status, now time.Time) error {
	t := newTable(w)
	t.row("Node:", cmp.Or(s.Node, "-"))
	t.row("Health:", health(s))
	t.row("API server:", apiServer(s, now))
	t.row("Pods:", fmt.Sprintf("%d stored, %d pending (%d versions behind), %d failing", s.Pods, s.Pending, s.AckedVersionsBehind, s.Failing))
	t.row("Journal:", fmt.Sprintf("%s, head %d, epoch %d, %s (%s free)", cmp.Or(s.Journal, "-"), s.HeadSequence, s.Epoch, bytesText(s.JournalBytes), bytesText(s.FreeBytes)))
	if !s.Started.IsZero() {
		t.row("Running for:", duration.HumanDuration(now.Sub(s.Started)))
	}
	if err := t.flush(); err != nil {
		return err
	}
	if len(s.FailingPods) == 0 {
		return nil
	}
	if err := write(w, []byte("\n")); err != nil {
		return err
	}
	t = newTable(w)
	t.row("FAILING POD", "REASON", "ATTEMPTS", "SINCE", "MESSAGE")
	for _, p := range s.FailingPods {
		t.row(p.Namespace+"/"+p.Name, p.Reason, fmt.Sprint(p.Attempts), duration.HumanDuration(now.Sub(p.Since)), p.Message)
	}
	return t.flush()
}

func health(s httpapi.Status) string {
	switch {
	case s.Degraded:
		return "degraded: " + cmp.Or(s.DegradedReason, "writes fail")
	case s.Suspect:
		return "ok, but the last commit before the start may be lost"
	default:
		return "ok"
	}
}

func apiServer(s httpapi.Status, now time.Time) string {
	ago := ""
	if s.LastSyncErrorTime != nil {
		ago = " " + duration.HumanDuration(now.Sub(*s.LastSyncErrorTime)) + " ago"
	}
	switch {
	case !s.Syncing:
		return "none, nothing is sent"
	case !s.LiveSynced && s.LastSyncError == "":
		return "not reached yet"
	case !s.LiveSynced:
		return fmt.Sprintf("not reached yet, last error%s: %s", ago, s.LastSyncError)
	case s.ServerFailing:
		return fmt.Sprintf("failing: %s", cmp.Or(s.LastSyncError, "it does not answer"))
	case s.LastSyncError == "":
		return "ok"
	default:
		return fmt.Sprintf("ok, last error%s: %s", ago, s.LastSyncError)
	}
}

func bytesText(n int64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d B", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d MiB", n>>20)
	}
}
