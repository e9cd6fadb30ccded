// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/dump/scan"
	"github.com/statusstore/statusstore/journal"
)

// decimal is a flag's value: a number in base 10, whatever it begins with.
type decimal struct{ value, least uint64 }

func (d *decimal) String() string { return strconv.FormatUint(d.value, 10) }
func (d *decimal) Type() string   { return "number" }

func (d *decimal) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n < d.least {
		return fmt.Errorf("want a decimal number from %d", d.least)
	}
	d.value = n
	return nil
}

// filterFlags are the selections of events as they are typed.
type filterFlags struct {
	pod, uid     string
	kinds        []string
	from, to     decimal
	since, until string
}

func (f *filterFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.pod, "pod", "", "only events of this pod, `NS/NAME` or NAME in default")
	flags.StringVar(&f.uid, "uid", "", "only events of the pod with this `UID`")
	flags.StringSliceVar(&f.kinds, "kind", nil, "only events of this `KIND`: set, finished, removed, rejected, opened; may be repeated")
	f.to.least = 1 // 0, for "all", would be a surprise to who computes it
	flags.Var(&f.from, "from", "first `SEQUENCE`")
	flags.Var(&f.to, "to", "last `SEQUENCE`")
	f.registerTimes(c)
	_ = c.RegisterFlagCompletionFunc("pod", completePod)
	_ = c.RegisterFlagCompletionFunc("uid", completeUID)
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"set", "finished", "removed", "rejected", "opened"}, cobra.ShellCompDirectiveNoFileComp))
}

func (f *filterFlags) registerTimes(c *cobra.Command) {
	c.Flags().StringVar(&f.since, "since", "", "only events at or after this `TIME`: RFC 3339, a duration back from now such as 2h, a sequence, or epoch:N")
	c.Flags().StringVar(&f.until, "until", "", "only events at or before this `TIME`; epoch:N is the end of that epoch")
}

// filter says which events are wanted. The zero value wants all.
type filter struct {
	namespace, name string
	uid             types.UID
	kinds           map[string]bool
	from, to        journal.Sequence
	since, until    point
}

func (f *filterFlags) parse(clock clock, now time.Time) (filter, error) {
	want := filter{uid: types.UID(f.uid), from: journal.Sequence(f.from.value), to: journal.Sequence(f.to.value)}
	var err error
	if f.pod != "" {
		if want.namespace, want.name, err = parsePod(f.pod); err != nil {
			return want, err
		}
	}
	for _, k := range f.kinds {
		if _, ok := journal.ParseKind(k); !ok {
			return want, usagef("kind %q: want set, finished, removed, rejected or opened", k)
		}
		if want.kinds == nil {
			want.kinds = map[string]bool{}
		}
		want.kinds[k] = true
	}
	if f.since != "" {
		if want.since, err = clock.parsePoint(f.since, now); err != nil {
			return want, err
		}
	}
	if f.until != "" {
		if want.until, err = clock.parsePoint(f.until, now); err != nil {
			return want, err
		}
	}
	if want.to != 0 && want.to < want.from {
		return want, usagef("--to %d is before --from %d", want.to, want.from)
	}
	if a, b := want.since, want.until; b.time.Before(a.time) && !b.time.IsZero() || b.sequence < a.sequence && b.sequence != 0 || b.epoch < a.epoch && b.epoch != 0 {
		return want, usagef("--until %s is before --since %s", f.until, f.since)
	}
	return want, nil
}

// parsePod reads NS/NAME, or NAME in the default namespace.
func parsePod(s string) (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(s, "/")
	if !ok {
		namespace, name = "default", s
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", usagef("pod %q: want NS/NAME, or NAME in namespace default", s)
	}
	return namespace, name, nil
}

// match looks at everything but the status. Times are compared event by event:
// a clock that was set back makes them go down in places.
func (f *filter) match(e *Event) bool {
	return e.Sequence >= f.from && (f.to == 0 || e.Sequence <= f.to) && f.concerns(e) &&
		(f.kinds == nil || f.kinds[e.Kind]) && f.within(e.Sequence, e.Epoch, e.Time)
}

// within compares with since and until.
func (f *filter) within(seq journal.Sequence, epoch journal.Epoch, at time.Time) bool {
	return seq >= f.since.sequence && epoch >= f.since.epoch && !at.Before(f.since.time) &&
		(f.until.sequence == 0 || seq <= f.until.sequence) && (f.until.epoch == 0 || epoch <= f.until.epoch) &&
		(f.until.time.IsZero() || !at.After(f.until.time))
}

// keep is match before anything is copied. Pods only: whatever else concerns them.
func (f *filter) keep(whole bool) func(*scan.Record) bool {
	var kinds [math.MaxUint8 + 1]bool
	for k := range kinds {
		kinds[k] = f.kinds == nil || f.kinds[journal.Kind(k).String()]
	}
	always := f.since == point{} && f.until == point{}
	return func(r *scan.Record) bool {
		if f.name != "" && (string(r.Name) != f.name || string(r.Namespace) != f.namespace) || f.uid != "" && string(r.UID) != string(f.uid) {
			return false
		}
		return !whole || kinds[r.Kind] && (always || f.within(r.Sequence, r.Epoch, r.Time()))
	}
}

// concerns looks at the pod only.
func (f *filter) concerns(e *Event) bool {
	return (f.name == "" || e.Namespace == f.namespace && e.Name == f.name) && (f.uid == "" || e.UID == f.uid)
}
