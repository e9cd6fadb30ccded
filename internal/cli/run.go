// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/statusstore/statusstore/internal/agent"
)

const runLong = `Run the agent: store pod statuses and send them to the API server. When the
socket answers, one line is printed on standard output: "ready socket=PATH".
Logs go to standard error. SIGTERM, SIGINT and SIGHUP end it in an orderly way,
within --shutdown-timeout.

Without --kubeconfig, and outside of a cluster, nothing is sent; everything else
works. With --mode record the agent journals the statuses that it sees on the
API server, of one node or of --all-nodes, and writes nothing back; next to a
stock kubelet use only this mode.

Each setting can also be given in the file named by --config, a YAML mapping with
"version: 1" (data-dir is dataDir there), or in the environment
(STATUSSTORE_DATA_DIR), but STATUSSTORE_SOCKET counts for the other commands only.
Flags win over the environment, the environment wins over the file.
--print-config shows what results.`

// runFlags are the settings of run and what is no setting.
type runFlags struct {
	agent       agent.Config
	mode        *choice
	logFormat   *choice
	logLevel    *choice
	configFile  string
	printConfig bool
}

func newRunFlags() *runFlags {
	return &runFlags{
		mode:      newChoice("mode", string(agent.ModeManage), string(agent.ModeRecord)),
		logFormat: newChoice("format", "text", "json"),
		logLevel:  newChoice("level", "info", "debug", "warn", "error"),
	}
}

func newRun(s streams) *cobra.Command {
	r := newRunFlags()
	cmd := &cobra.Command{
		Use:   "run --data-dir DIR --node NAME",
		Short: "Run the agent",
		Long:  runLong,
		Example: `  statusstore run --data-dir /var/lib/statusstore --node node-1 --kubeconfig /etc/kubernetes/kubelet.conf
  statusstore run --config /etc/statusstore.yaml
  statusstore run --data-dir ./data --node test    # without a cluster`,
		Args: wantArgs(cobra.NoArgs, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd, s) },
	}
	r.addFlags(cmd)
	return cmd
}

func (r *runFlags) addFlags(cmd *cobra.Command) {
	f, c := cmd.Flags(), &r.agent
	standard, _ := agent.Config{}.WithDefaults() // which fails for no defaults
	f.SortFlags = false
	f.StringVar(&c.DataDir, "data-dir", "", "`directory` of the journal; required")
	f.StringVar(&c.Node, "node", "", "`name` of the node whose pods are stored; required, unless --all-nodes")
	f.BoolVar(&c.AllNodes, "all-nodes", false, "with --mode record and without --node: the pods of all nodes")
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server (default: the cluster that this runs in, if any)")
	f.StringVar(&c.Socket, "socket", "", "`path` of the unix socket (default DATA_DIR/"+agent.SocketName+")")
	f.StringVar(&c.SocketGroup, "socket-group", "", "`group` whose members may use the socket too")
	f.StringSliceVar(&c.AllowUsers, "allow-users", nil, "`users`, by name or number, who may use the socket too")
	f.StringSliceVar(&c.AllowGroups, "allow-groups", nil, "`groups` whose members may use the socket too")
	f.StringSliceVar(&c.ReadOnlyUsers, "read-only-users", nil, "`users` who may only read")
	f.StringSliceVar(&c.ReadOnlyGroups, "read-only-groups", nil, "`groups` whose members may only read")
	f.Var(r.mode, "mode", "manage: send what callers store; record: journal what the API server shows")
	f.Float32Var(&c.QPS, "qps", standard.QPS, "requests per second to the API server; negative is no limit")
	f.IntVar(&c.Burst, "burst", standard.Burst, "requests that may go out at once")
	f.IntVar(&c.Workers, "workers", standard.Workers, "pods that are sent at the same time")
	f.DurationVar(&c.PassInterval, "pass-interval", standard.PassInterval, "time between comparisons of all pods with the API server")
	f.DurationVar(&c.RequestTimeout, "request-timeout", standard.RequestTimeout, "limit of one request to the API server")
	f.DurationVar(&c.DrainTimeout, "drain-timeout", standard.DrainTimeout, "limit of sending what is pending at the end")
	f.DurationVar(&c.ShutdownTimeout, "shutdown-timeout", standard.ShutdownTimeout, "limit of an orderly end")
	f.DurationVar(&c.LockTimeout, "lock-timeout", standard.LockTimeout, "limit of waiting for a journal that is in use")
	f.IntVar(&c.Retention.EventsPerPod, "history", standard.Retention.EventsPerPod, "`events` that are kept in all: so many times the number of pods, at least 1000; the oldest go first, but each pod's newest stays")
	f.Int64Var(&c.Retention.MaxBytes, "history-bytes", standard.Retention.MaxBytes, "`bytes` of events that are kept in all")
	f.StringVar(&c.Listen, "listen", "", "TCP `address` for reading, such as 127.0.0.1:8080 (default: none)")
	f.BoolVar(&c.ListenRemote, "listen-remote", false, "allow --listen on an address that is not loopback; there is no authentication")
	f.BoolVar(&c.Profiling, "pprof", false, "serve profiles under /debug/pprof on the socket, for those who may write")
	f.Var(r.logFormat, "log-format", "text or json")
	f.Var(r.logLevel, "log-level", "debug, info, warn or error")
	f.StringVar(&r.configFile, "config", "", "configuration `file` (default $STATUSSTORE_CONFIG)")
	f.BoolVar(&r.printConfig, "print-config", false, "print the resulting configuration and end")
	f.BoolVar(&c.MoveDamagedAside, "move-damaged-aside", false, "rename a journal that can't be read and start with a new one; for once, not for always")
	r.mode.complete(cmd, "mode")
	r.logFormat.complete(cmd, "log-format")
	r.logLevel.complete(cmd, "log-level")
}

func (r *runFlags) run(cmd *cobra.Command, s streams) error {
	var file map[string]fileValue
	if path := cmp.Or(r.configFile, os.Getenv("STATUSSTORE_CONFIG")); path != "" {
		var err error
		if file, err = readConfig(path); err != nil {
			return err
		}
	}
	if err := fillFlags(cmd.Flags(), file, os.Getenv); err != nil {
		return err
	}
	if err := r.settle(); err != nil {
		return err
	}
	if r.printConfig {
		return printConfig(s.out, cmd.Flags())
	}
	if r.agent.DataDir == "" {
		return usagef("run: --data-dir DIR is required")
	}
	if r.agent.Node == "" && !r.agent.AllNodes {
		return usagef("run: --node NAME is required")
	}
	return r.runAgent(cmd.Context(), s)
}

// settle makes the flags show what counts, where that is decided by the agent.
func (r *runFlags) settle() error {
	r.agent.Mode = agent.Mode(r.mode.value)
	settled, err := r.agent.WithDefaults()
	if err != nil {
		return &usageError{err}
	}
	r.agent = settled
	return nil
}

func (r *runFlags) runAgent(ctx context.Context, s streams) error {
	logger := newLogger(s.err, r.logFormat.value, r.logLevel.value)
	// A reader of the log or of the ready line that goes away is no reason to end.
	signal.Ignore(syscall.SIGPIPE)
	// client-go logs through klog, which would write its own format.
	klog.SetSlogLogger(logger.With("component", "client-go"))
	c := r.agent
	c.Logger = logger
	c.Software = "statusstore " + readBuildInfo().Version
	c.Ready = func(socket string) {
		if _, err := fmt.Fprintf(s.out, "ready socket=%s\n", socket); err != nil {
			logger.Warn("standard output is closed", "err", err)
		}
	}
	if os.Getenv("GOGC") == "" {
		// A node's agent saves memory rather than processor time: half as much garbage
		// waits to be collected (docs/performance.md, "Memory and many pods").
		debug.SetGCPercent(50)
	}
	ctx, stop := untilSignal(ctx, c.ShutdownTimeout)
	defer stop()
	err := agent.Run(ctx, c)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, agent.ErrConfig):
		return &usageError{err}
	case r.logFormat.value == "json":
		// Whoever collects the log wants one format.
		logger.Error("agent ends", "err", oneLine(err))
		return errReported
	default:
		return err
	}
}

// untilSignal ends the context at the first SIGTERM, SIGINT or SIGHUP. More of them
// change nothing until the process has ended in order, or could not in time.
func untilSignal(ctx context.Context, limit time.Duration) (context.Context, func()) {
	signals := []os.Signal{syscall.SIGTERM, os.Interrupt}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, signals...)
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case s := <-arrived:
			cancel(fmt.Errorf("%v signal received", s))
		case <-ctx.Done():
		}
	}()
	late := context.AfterFunc(ctx, func() {
		time.AfterFunc(limit+time.Second, func() { signal.Reset(signals...) })
	})
	return ctx, func() {
		if ctx.Err() == nil { // the agent ended by itself
			late()
			signal.Stop(arrived)
		}
		cancel(nil)
		<-over
	}
}
