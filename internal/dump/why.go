// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

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
between, and what the API server has acknowledged. With --socket, FILE is left out.`,
		Example: `  journal-dump why /var/lib/statusstore default/web-0
  journal-dump why --since 24h journal.db web-0`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("why wants FILE and a pod, NS/NAME")
			}
			args, times.pod = args[:len(args)-1], args[len(args)-1]
			want, err := times.parse(time.Now())
			if err != nil {
				return err
			}
			return f.read(c.Context(), std, args, func(s *session) error { return s.printStory(c.Context(), want) })
		},
	}
	f.register(c)
	c.Flags().StringVar(&times.since, "since", "", "only what happened at or after this `TIME`: RFC 3339, or a duration back from now such as 2h")
	c.Flags().StringVar(&times.until, "until", "", "only what happened at or before this `TIME`")
	return c
}

// sentence is one thing that happened.
type sentence struct {
	Time     time.Time        `json:"time"`
	Sequence journal.Sequence `json:"sequence"`
	UID      types.UID        `json:"uid,omitempty"`
	Text     string           `json:"text"`
}

func (s *session) printStory(ctx context.Context, want filter) (err error) {
	rows := newList(s.out, []column[sentence]{
		{name: "TIME", width: 24, cell: func(t sentence) string { return s.clock.format(t.Time) }},
		{name: "EVENT", width: 5, cell: func(t sentence) string { return fmt.Sprint(t.Sequence) }},
		{name: "UID", width: 36, wide: true, cell: func(t sentence) string { return string(t.UID) }},
		{name: "WHAT HAPPENED", width: 3, cell: func(t sentence) string { return t.Text }},
	})
	defer func() { err = cmp.Or(err, rows.close()) }()
	stats, statsErr := s.Stats()
	if statsErr != nil {
		s.damage.report(statsErr)
	}
	told := story{want: want, lives: map[types.UID]*life{}, trimmed: stats.Horizon > 0, acks: s.acks()}
	within := func(t sentence) bool {
		return !t.Time.Before(want.since) && (want.until.IsZero() || !t.Time.After(want.until))
	}
	for e, err := range s.events(ctx, 1, 0) {
		if err != nil {
			return err
		}
		all, err := told.event(&e)
		if err != nil {
			s.damage.report(err)
		}
		for _, t := range all {
			if !within(t) {
				continue
			}
			if err := rows.add(t); err != nil {
				return err
			}
		}
	}
	if len(told.lives) == 0 {
		return fmt.Errorf("%s: no events of pod %s/%s", s.name, want.namespace, want.name)
	}
	for _, t := range told.end() {
		if err := rows.add(t); err != nil {
			return err
		}
	}
	return nil
}
