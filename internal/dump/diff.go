// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/projection"
)

// podDiff is what became of one pod between two points.
type podDiff struct {
	Namespace  string          `json:"namespace"`
	Name       string          `json:"name"`
	UID        types.UID       `json:"uid"`
	What       string          `json:"what"` // added, removed, changed
	OldVersion journal.Version `json:"oldVersion"`
	NewVersion journal.Version `json:"newVersion"`
	Changes    []Change        `json:"changes"`
}

func diffCommand(std *streams) *cobra.Command {
	var f common
	var podFlags podSelection
	c := &cobra.Command{
		Use:   "diff FILE A B",
		Short: "Print what changed between two sequences or times",
		Long: `Print what changed in each pod's status from point A to point B, field by field. A
point is a sequence, a time in RFC 3339, a duration back from now such as 2h, now, or
epoch:N, the start of that epoch.
With --socket, FILE is left out.`,
		Example: `  journal-dump diff journal.db 1200 1350
  journal-dump diff --pod web-0 journal.db 2026-01-31T03:00:00Z 2026-01-31T03:10:00Z
  journal-dump diff /var/lib/statusstore 2h now
  journal-dump diff journal.db epoch:6 epoch:7`,
		ValidArgsFunction: completeFile,
		RunE: func(c *cobra.Command, args []string) error {
			want, err := podFlags.parse()
			if err != nil {
				return err
			}
			if wrong := wantsBehind("diff", f.socket, args, "A", "B"); wrong != nil {
				return wrong
			}
			args, points := args[:len(args)-2], args[len(args)-2:]
			var ends [2]point
			for i, p := range points {
				if ends[i], err = f.clock().parsePoint(p, time.Now()); err != nil {
					return err
				}
			}
			return f.read(c.Context(), std, args, func(s *session) error { return s.printDiff(c.Context(), want, ends[0], ends[1]) })
		},
	}
	f.registerSource(c)
	f.registerOutput(c)
	f.registerZone(c)
	f.registerRedact(c)
	podFlags.register(c)
	return c
}

func (s *session) printDiff(ctx context.Context, want filter, a, b point) (err error) {
	before, _, err := s.stateAt(ctx, a)
	if err != nil {
		return err
	}
	after, _, err := s.stateAt(ctx, b)
	if err != nil {
		return err
	}
	rows := newList[podDiff](s.out, nil)
	if !s.out.format.text() {
		defer func() { err = cmp.Or(err, rows.close()) }()
	}
	for _, pair := range pairs(before, after) {
		if !want.wantsEntry(cmp.Or(pair.new, pair.old)) {
			continue
		}
		d, err := pair.redacted(s.redact).diff()
		if err != nil {
			return err
		}
		if d.What == "" {
			continue
		}
		if !s.out.format.text() {
			err = rows.add(d)
		} else {
			err = s.out.printDiff(d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type pair struct{ old, new *projection.Entry }

// pairs are the pods of either state, by namespace and name.
func pairs(before, after *projection.State) []pair {
	var out []pair
	for _, e := range before.Entries() {
		next, _ := after.Get(e.UID)
		out = append(out, pair{e, next})
	}
	for _, e := range after.Entries() {
		if _, ok := before.Get(e.UID); !ok {
			out = append(out, pair{nil, e})
		}
	}
	return sortedPairs(out)
}

func (p pair) redacted(r *redactor) pair { return pair{r.entry(p.old), r.entry(p.new)} }

func (p pair) diff() (podDiff, error) {
	any := cmp.Or(p.new, p.old)
	d := podDiff{Namespace: any.Namespace, Name: any.Name, UID: any.UID}
	var err error
	switch {
	case p.old == nil:
		d.What, d.NewVersion = "added", p.new.Version
		d.Changes, err = changesBetween(nil, p.new.Status)
	case p.new == nil:
		d.What, d.OldVersion = "removed", p.old.Version
		d.Changes = []Change{}
	case p.old.Version != p.new.Version:
		d.What, d.OldVersion, d.NewVersion = "changed", p.old.Version, p.new.Version
		d.Changes, err = changesBetween(p.old.Status, p.new.Status)
		if p.old.Finished != p.new.Finished {
			d.Changes = append(d.Changes, Change{Path: "(finished)", Old: p.old.Finished, New: p.new.Finished})
		}
	}
	return d, err
}

func (o *output) printDiff(d podDiff) error {
	versions := fmt.Sprintf("version %d → %d", d.OldVersion, d.NewVersion)
	switch {
	case d.OldVersion == 0:
		versions = fmt.Sprintf("version %d", d.NewVersion)
	case d.NewVersion == 0:
		versions = fmt.Sprintf("version %d", d.OldVersion)
	}
	o.line(bold, fmt.Sprintf("%s/%s  %s  %s  (%s)", d.Namespace, d.Name, d.What, versions, d.UID))
	writeChanges(o, d.Changes)
	o.WriteByte('\n')
	return o.flush()
}

func sortedPairs(all []pair) []pair {
	slices.SortFunc(all, func(a, b pair) int {
		x, y := cmp.Or(a.new, a.old), cmp.Or(b.new, b.old)
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name), cmp.Compare(x.UID, y.UID))
	})
	return all
}
