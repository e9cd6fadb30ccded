// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/statusstore/statusstore/test/compare/journals"
	"github.com/statusstore/statusstore/test/compare/report"
)

var journalCommand = command{
	"journal", "durable appends beside pebble, SQLite, tidwall/wal, bbolt's Batch and two pure logs",
	func(flags *flag.FlagSet) func(context.Context, *report.Report) error {
		var o journals.Options
		flags.StringVar(&o.Dir, "dir", "", "folder on the file system to measure (default: the one for temporary files)")
		flags.IntVar(&o.Rounds, "rounds", 5, "rounds; the figures are medians over them")
		flags.DurationVar(&o.Slice, "slice", 400*time.Millisecond, "time of each engine at each number of writers in a round")
		flags.IntVar(&o.Fill, "fill", 0, "events that each engine has before (default: past the first trim)")
		flags.BoolVar(&o.Compress, "compress", false, "give the peers compressed statuses, too")
		writers := flags.String("writers", "1,16,64,256", "numbers of writers")
		engines := flags.String("engines", "", "only these, separated by commas: "+strings.Join(journals.Names(), ", "))
		return func(_ context.Context, r *report.Report) error {
			var err error
			if o.Writers, err = integers(*writers); err != nil {
				return err
			}
			if *engines != "" {
				o.Engines = strings.Split(*engines, ",")
			}
			return journals.Append(r, o)
		}
	},
}

var historyCommand = command{
	"history", "opening and replaying a long journal, its file under endless change",
	func(flags *flag.FlagSet) func(context.Context, *report.Report) error {
		var o journals.HistoryOptions
		flags.StringVar(&o.Dir, "dir", "", "folder on the file system to measure (default: the one for temporary files)")
		flags.IntVar(&o.Events, "events", 1_000_000, "length of the long history")
		flags.IntVar(&o.Repeats, "repeats", 11, "how often each file is opened")
		flags.IntVar(&o.Changes, "changes", 400_000, "events of the run under endless change")
		return func(_ context.Context, r *report.Report) error { return journals.History(r, o) }
	},
}

func integers(list string) ([]int, error) {
	var numbers []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%w: %q is no list of positive numbers", errUsage, list)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
