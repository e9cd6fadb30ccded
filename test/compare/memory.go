// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"time"

	"github.com/statusstore/statusstore/test/compare/inmemory"
	"github.com/statusstore/statusstore/test/compare/report"
)

var memoryCommand = command{
	"memory", "SetPodStatus and GetPodStatus without a server, and memory per pod, beside the stock manager",
	func(flags *flag.FlagSet) func(context.Context, *report.Report) error {
		var o inmemory.Options
		flags.StringVar(&o.Dir, "dir", "", "folder for journals; one in memory shows best what is not the commit")
		flags.IntVar(&o.Rounds, "rounds", 5, "rounds; the figures are medians over them")
		flags.DurationVar(&o.Slice, "slice", 200*time.Millisecond, "time of each kind of call in a round")
		flags.IntVar(&o.Pods, "pods", 100, "pods whose statuses are set")
		flags.IntVar(&o.Heap, "heap-pods", 1000, "pods of the measurement of memory")
		return func(_ context.Context, r *report.Report) error {
			return errors.Join(inmemory.Calls(r, o), inmemory.Reads(r, o), inmemory.Memory(r, o))
		}
	},
}
