// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/dump/scan"
	"github.com/statusstore/statusstore/journal"
)

func whyCommand(std *streams) *cobra.Command {
	var f common
	var times filterFlags
	c := &cobra.Command{
		Use:   "why FILE NS/NAME",
		Short: "Tell in sentences when and why a pod became ready or unready, restarted, ended",
		Long: `Tell a pod's story in sentences: when and for what reason it became ready or not,
container restarts with their exit codes, refused updates, starts of the agent in
between, and the newest version that the API server has acknowledged, with how long
that took: the journal keeps no older acks. With --socket, FILE is left out.`,
		Example: `  journal-dump why /var/lib/statusstore default/web-0
  journal-dump why --since 24h journal.db web-0`,
		RunE: func(c *cobra.Command, args []string) error {
			if wrong := wantsBehind("why", f.socket, args, "NS/NAME"); wrong != nil {
				return wrong
			}
			args, times.pod = args[:len(args)-1], args[len(args)-1]
			want, err := times.parse(f.clock(), time.Now())
			if err != nil {
				return err
			}
			return f.read(c.Context(), std, args, func(s *session) error { return s.printStory(c.Context(), want) })
		},
	}
	f.register(c)
	times.registerTimes(c)
	c.ValidArgsFunction = completeFileThenPod
	return c
}

// sentence is one thing that happened.
type sentence struct {
	Time     time.Time        `json:"time"`
	Sequence journal.Sequence `json:"sequence"`
	UID      types.UID        `json:"uid,omitempty"`
	Text     string           `json:"text"`

	happening happening
}

func (s *session) printStory(ctx context.Context, want filter) (err error) {
	rows := newList(s.out, []column[sentence]{
		{name: "TIME", width: 24, cell: func(t sentence) string { return s.clock.format(t.Time) }},
		{name: "EVENT", width: 5, cell: func(t sentence) string { return fmt.Sprint(t.Sequence) }},
		{name: "UID", width: 36, wide: true, cell: func(t sentence) string { return string(t.UID) }},
		{name: "WHAT HAPPENED", width: 3, cell: func(t sentence) string { return t.Text }},
	})
	if err := s.checkRange(ctx, want); err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, rows.close()) }()
	horizon, horizonErr := s.Horizon()
	if horizonErr != nil {
		s.damage.report(horizonErr)
	}
	told := story{want: want, lives: map[types.UID]*life{}, trimmed: horizon > 0, acks: s.acks(), redact: s.redact}
	keep := told.want.keep(false)
	for stored, err := range s.dated(ctx, s.damage.report, func(r *scan.Record) bool { return r.Kind == journal.KindOpened || keep(r) }) {
		if err != nil {
			return err
		}
		e := fromJournal(stored.Event)
		told.before = stored.before
		all, err := told.event(&e)
		if err != nil {
			s.damage.report(err)
		}
		for _, t := range all {
			if !want.within(e.Sequence, e.Epoch, e.Time) {
				continue
			}
			if err := rows.add(t); err != nil {
				return err
			}
		}
	}
	if len(told.lives) == 0 {
		return s.noSuchPod(want)
	}
	for _, t := range told.end() {
		if err := rows.add(t); err != nil {
			return err
		}
	}
	return nil
}

// noSuchPod helps with a name that is mistyped, or of another namespace.
func (s *session) noSuchPod(want filter) error {
	text := fmt.Sprintf("%s: no events of pod %s/%s", s.name, want.namespace, want.name)
	var near []string
	for _, p := range podsOf(s.source) {
		namespace, name, _ := strings.Cut(p, "/")
		if name == want.name || namespace == want.namespace && strings.Contains(name, want.name) {
			near = append(near, p)
		}
	}
	if len(near) > 0 && s.redact == nil {
		text += "; there is " + strings.Join(near[:min(len(near), 5)], ", ")
	}
	return errors.New(text)
}
