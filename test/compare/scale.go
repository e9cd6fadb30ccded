// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"

	"github.com/statusstore/statusstore/test/compare/report"
	"github.com/statusstore/statusstore/test/compare/server"
)

var scaleCommand = command{
	"scale", "the agent with 500 and with 10,000 pods on a real API server: burst, restart, memory",
	func(flags *flag.FlagSet) func(context.Context, *report.Report) error {
		o := server.ScaleOptions{}
		flags.StringVar(&o.Launcher, "launcher", launcher, "script that runs control planes")
		flags.StringVar(&o.Source, "source", "../..", "folder of the module that has cmd/statusstore")
		flags.IntVar(&o.Changed, "changed", 10, "pods of 100 that change before the second restart")
		pods := flags.String("pods", "500,10000", "numbers of pods")
		return func(ctx context.Context, r *report.Report) error {
			var err error
			if o.Pods, err = integers(*pods); err != nil {
				return err
			}
			return server.Scale(ctx, r, o)
		}
	},
}
