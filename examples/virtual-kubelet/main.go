// SPDX-License-Identifier: Apache-2.0

// Command virtual-kubelet is a virtual-kubelet provider whose pods' statuses go through a
// durable store: each is on disk before anybody sees it, and the store, not the framework,
// writes to the API server. Pods run by the clock: for as long as an annotation says.
//
//	virtual-kubelet --kubeconfig FILE --node NAME --data-dir DIR
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/log/klogv2"
)

func main() {
	os.Exit(command(os.Args[1:], os.Stdout, os.Stderr))
}

// command runs the program until SIGINT or SIGTERM and returns its exit status.
func command(args []string, out, logs io.Writer) int {
	var o options
	flags := flag.NewFlagSet("virtual-kubelet", flag.ContinueOnError)
	flags.SetOutput(logs)
	flags.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "how to reach the API server")
	flags.StringVar(&o.node, "node", "timetable", "name of the node that is registered")
	flags.StringVar(&o.dataDir, "data-dir", "", "folder of the store; is made if it is missing")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if o.kubeconfig == "" || o.dataDir == "" || o.node == "" || flags.NArg() > 0 {
		fmt.Fprintln(logs, "usage: virtual-kubelet --kubeconfig FILE --data-dir DIR [--node NAME]")
		return 2
	}
	o.out = out
	o.log = slog.New(slog.NewTextHandler(logs, nil))
	log.L = klogv2.New(nil) // the framework's
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(logs, "virtual-kubelet:", err)
		return 1
	}
	return 0
}
