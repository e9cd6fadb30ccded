// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/statusstore/statusstore/test/compare/report"
	"github.com/statusstore/statusstore/test/compare/server"
)

const launcher = "../controlplane/controlplane.sh"

var serverCommand = command{
	"server", "the stock status manager and ours on a real API server: burst, restart, outage, a hanging pod",
	func(flags *flag.FlagSet) func(context.Context, *report.Report) error {
		var o server.Options
		flags.StringVar(&o.Launcher, "launcher", launcher, "script that runs control planes")
		flags.IntVar(&o.Rounds, "rounds", 3, "rounds, with the two sides in turn; the figures are medians over them")
		scenarios := flags.String("scenarios", "", "only these, separated by commas: "+strings.Join(server.Scenarios, ", "))
		pods := flags.String("pods", "500,5000", "sizes of bursts and restarts")
		limits := flags.String("limits", "50/100,unlimited", "limits of the clients")
		flags.DurationVar(&o.Settle, "settle", 3*time.Second, "a restart is over when nothing was sent for this long; 12s to see a pass")
		flags.IntVar(&o.OutagePods, "outage-pods", 500, "pods of the outage")
		flags.IntVar(&o.Changes, "changes", 20_000, "changes during the outage")
		flags.DurationVar(&o.Away, "away", 20*time.Second, "least duration of the outage")
		flags.IntVar(&o.StreamPods, "stream-pods", 200, "pods of the run with a hanging one")
		flags.IntVar(&o.PerSecond, "per-second", 100, "changes a second of that run")
		flags.DurationVar(&o.StreamTime, "stream", 15*time.Second, "duration of that run")
		return func(ctx context.Context, r *report.Report) error {
			var err error
			if o.Pods, err = integers(*pods); err != nil {
				return err
			}
			o.Limited, o.Unlimited = strings.Contains(*limits, "50/100"), strings.Contains(*limits, "unlimited")
			if *scenarios != "" {
				o.Scenarios = strings.Split(*scenarios, ",")
			}
			o.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
			return server.Run(ctx, r, o)
		}
	},
}
