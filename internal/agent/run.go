// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/statusstore/statusstore/internal/httpapi"
	"github.com/statusstore/statusstore/internal/logkey"
	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/syncer"
)

// Run is the agent. It blocks until ctx ends and the agent has stopped in order,
// and returns nil then. Errors: ErrConfig, ErrInsecure, those of journal.Open,
// ErrSocketInUse, ErrNotSocket, ErrJournalFailed.
func Run(ctx context.Context, c Config) error {
	c, err := c.complete()
	if err != nil {
		return err
	}
	a, err := open(ctx, c)
	if err != nil {
		return err
	}
	return a.run(ctx)
}

// agent is what is open while the agent runs.
type agent struct {
	Config
	manager  *manager.Manager
	recorder *recorder        // record mode
	live     *syncer.LivePods // nil without an API server
	servers  []*server
	stopping chan struct{} // closed to end watches and other streams

	supervisor supervisor
}

// open opens everything, the journal before the socket: its lock tells whether
// another agent is there, whose socket must be left alone.
func open(ctx context.Context, c Config) (*agent, error) {
	who, err := newAccess(c)
	if err != nil {
		return nil, err
	}
	client, host, err := newClient(c)
	if err != nil {
		return nil, err
	}
	if client == nil && c.Mode == ModeRecord {
		return nil, fmt.Errorf("%w: record mode needs an API server: use --kubeconfig", ErrConfig)
	}
	if client != nil && c.Node == "" && c.Mode == ModeManage {
		return nil, fmt.Errorf("%w: --node is required", ErrConfig)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	// Before the journal: a port that is taken must not cost an epoch.
	tcp, err := listenTCP(ctx, c)
	if err != nil {
		return nil, err
	}
	closeTCP := func() error {
		if tcp == nil {
			return nil
		}
		return tcp.Close()
	}
	if err := prepareDataDir(c.DataDir); err != nil {
		return nil, errors.Join(err, closeTCP())
	}
	metrics := httpapi.NewMetrics()
	o := manager.Options{
		Path: journalPath(c.DataDir), Node: c.journalNode(), Software: c.Software, Client: client,
		Retention: c.Retention, LockTimeout: c.LockTimeout, Logger: c.Logger, Hooks: metrics.Hooks(),
		Sync: manager.SyncOptions{
			Workers: c.Workers, PassInterval: c.PassInterval, RequestTimeout: c.RequestTimeout, Observer: metrics,
		},
	}
	var live *syncer.LivePods
	if client != nil {
		live = syncer.NewLivePods(client, c.Node, syncer.LiveOptions{Logger: c.Logger})
		o.Live = live
	}
	if c.Mode == ModeRecord {
		o.Client, o.Live = nil, nil // nothing is sent
	}
	m, err := openManager(c, o)
	if err != nil {
		return nil, errors.Join(err, closeTCP())
	}
	a := &agent{Config: c, manager: m, live: live, stopping: make(chan struct{}), supervisor: newSupervisor(os.Getenv)}
	if c.Mode == ModeRecord {
		a.recorder = newRecorder(m, live, c, metrics)
	}
	err = tighten(o.Path, c.Logger)
	if err == nil {
		err = a.listen(ctx, who, tcp, metrics)
	}
	if err != nil {
		return nil, errors.Join(err, a.closeServers(0), closeTCP(), m.Close())
	}
	if client == nil {
		c.Logger.Warn("no API server is configured: statuses are stored and not sent", logkey.Node, c.Node)
	} else {
		c.Logger.Info("API server is configured", logkey.Server, host, logkey.Node, c.Node, logkey.Mode, c.Mode)
	}
	return a, nil
}

// listen opens the socket; tcp is the listener for readers, nil for none.
func (a *agent) listen(ctx context.Context, who access, tcp net.Listener, metrics *httpapi.Metrics) error {
	o := httpapi.Options{
		Manager: a.manager, Metrics: metrics, Syncing: a.live != nil, Profiling: a.Profiling,
		Node: a.Node, Mode: string(a.Mode), Software: a.Software, Logger: a.Logger, Stopping: a.stopping,
	}
	if a.live != nil {
		o.Live = a.live
	}
	if a.Mode == ModeRecord {
		o.ReadOnly = "the agent runs in record mode and stores only what the API server shows"
	}
	s, err := listenSocket(ctx, a.Socket, who)
	if err != nil {
		return err
	}
	a.servers = append(a.servers, newServer(newGuardedListener(s, who, a.Logger), byRole(httpapi.New(o)), a.Logger))
	if who.listed() && !reachable(filepath.Dir(a.Socket)) {
		a.Logger.Warn("others are allowed to use the socket, but its directory is closed to them; choose another with --socket", logkey.Path, a.Socket)
	}
	if tcp == nil {
		return nil
	}
	o.Profiling = false
	if o.ReadOnly == "" {
		o.ReadOnly = "over TCP the agent is read-only; use its socket"
	}
	handler := unprivileged(httpapi.New(o))
	if !a.ListenRemote {
		handler = localNames(handler)
	}
	a.servers = append(a.servers, newServer(tcp, handler, a.Logger))
	return nil
}

// run serves and syncs until ctx ends or something fails, then stops in order.
func (a *agent) run(ctx context.Context) error {
	// The parts outlive ctx: what is pending is sent after the servers stopped.
	working, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	group, working := errgroup.WithContext(working)
	group.Go(func() error { return a.manager.Run(working) })
	if a.recorder != nil {
		group.Go(func() error { return a.recorder.run(working) })
	}
	for _, s := range a.servers {
		group.Go(s.serve)
		a.Logger.Info("serving", logkey.Address, s.listener.Addr().String())
	}
	group.Go(func() error { a.supervisor.feed(working, a.Socket); return nil })
	if err := a.supervisor.tell(ctx, "READY=1\nSTATUS=serving on "+a.Socket); err != nil {
		a.Logger.Warn("cannot tell that the agent is ready", logkey.Err, err)
	}
	a.Ready(a.Socket)

	var cause error
	select {
	case <-ctx.Done():
		a.Logger.Info("stopping", logkey.Reason, context.Cause(ctx).Error())
	case <-working.Done(): // a part failed, or the journal
	}
	select {
	case <-a.manager.Failed():
		cause = fmt.Errorf("%w: %w", ErrJournalFailed, a.manager.Journal().Degraded())
	default:
	}
	return a.stop(cause, stopWork, group.Wait)
}

// stop ends everything within ShutdownTimeout.
func (a *agent) stop(cause error, stopWork func(), wait func() error) error {
	begin := time.Now()
	_ = a.supervisor.tell(context.Background(), "STOPPING=1") // it sees the end anyway
	done := make(chan error, 1)
	go func() {
		err := a.closeServers(serverGrace)
		if cause == nil {
			a.drain()
		}
		stopWork()
		done <- errors.Join(cause, err, wait(), a.manager.Close())
	}()
	select {
	case err := <-done:
		if err != nil {
			return err
		}
		a.Logger.Info("stopped", logkey.Wait, time.Since(begin).Round(time.Millisecond))
		return nil
	case <-time.After(a.ShutdownTimeout):
		// The disk hangs, most likely. What was accepted is on it already.
		return errors.Join(cause, fmt.Errorf("stop: not done after %v", a.ShutdownTimeout))
	}
}

// drain sends what is pending. What the API server does not take in time is sent
// after the next start.
func (a *agent) drain() {
	s := a.manager.Status()
	if a.recorder != nil || !s.Syncing || s.Pending == 0 {
		return
	}
	limit := min(a.DrainTimeout, a.ShutdownTimeout/2)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := a.manager.Drain(ctx); err != nil {
		a.Logger.Warn("not everything was sent; the rest follows after the next start",
			logkey.Pending, a.manager.Status().Pending, logkey.Err, err)
	}
}

// closeServers is called once.
func (a *agent) closeServers(grace time.Duration) error {
	close(a.stopping)
	errs := make([]error, 0, len(a.servers))
	for _, s := range a.servers {
		errs = append(errs, s.stop(grace))
	}
	return errors.Join(errs...)
}

var _ net.Listener = guardedListener{}
