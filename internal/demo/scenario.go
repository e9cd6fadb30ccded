// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
)

const (
	// firstRounds is how many statuses each pod gets before the outage.
	firstRounds = 2
	// burstRounds is how many each changing pod gets, on average, before the
	// agent is killed. With firstRounds it is less than what the journal keeps
	// per pod, so that every status can be looked up.
	burstRounds = 12
	// burstLimit ends the burst on a slow disk.
	burstLimit = 2 * time.Second
	// ackFlush is how long an ack may wait for its way to the disk, generously:
	// the journal promises one second.
	ackFlush = 5 * time.Second
)

// scenario is a demo on its way.
type scenario struct {
	o       Options
	started time.Time
	tempDir string
	dataDir string
	server  *fakeapi.Server
	pods    []*v1.Pod
	feed    *feed
	agent   *child // nil while none runs
	evidence
}

// Run plays the scenario and judges it. The error is for what kept it from its
// end; promises that did not hold are in the report.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &scenario{o: o, started: time.Now()}
	defer func() { err = errors.Join(err, s.cleanUp()) }()
	if err := s.setUp(); err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{s.begin, s.crashInOutage, s.restart, s.converge, s.crashIdle, s.end} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	report = judge(s.evidence)
	report.DataDir = o.DataDir
	return report, nil
}

func (s *scenario) say(format string, args ...any) {
	fmt.Fprintf(s.o.Progress, "%5.1fs  %s\n", time.Since(s.started).Seconds(), fmt.Sprintf(format, args...))
}

func (s *scenario) setUp() error {
	var err error
	if s.tempDir, err = shortTempDir(); err != nil {
		return err
	}
	if s.dataDir = s.o.DataDir; s.dataDir == "" {
		s.dataDir = filepath.Join(s.tempDir, "data")
	}
	if s.server, err = fakeapi.Listen(fakeapi.Options{}); err != nil {
		return fmt.Errorf("start API server: %w", err)
	}
	if err := s.server.WriteKubeconfig(s.kubeconfig()); err != nil {
		return err
	}
	if s.pods, err = createPods(s.server, s.o.Pods); err != nil {
		return err
	}
	s.feed = newFeed(s.pods)
	s.say("API server at %s with %d pods", s.server.URL(), len(s.pods))
	return nil
}

// shortTempDir makes a directory whose name leaves room for a socket's: the path
// of a socket is short.
func shortTempDir() (string, error) {
	const longest = 60
	parent := os.TempDir()
	if len(parent) > longest {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "statusstore-demo-")
	if err != nil {
		return "", fmt.Errorf("temporary directory: %w", err)
	}
	return dir, nil
}

func (s *scenario) kubeconfig() string { return filepath.Join(s.tempDir, "kubeconfig") }

func (s *scenario) cleanUp() error {
	var errs []error
	if s.agent != nil {
		errs = append(errs, s.agent.kill())
	}
	if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	if s.tempDir != "" {
		errs = append(errs, os.RemoveAll(s.tempDir))
	}
	return errors.Join(errs...)
}

func (s *scenario) startAgent(ctx context.Context) error {
	command := append(slices.Clone(s.o.Agent),
		"--data-dir", s.dataDir, "--node", nodeName, "--kubeconfig", s.kubeconfig(),
		"--socket", filepath.Join(s.tempDir, "agent.sock"),
		// The server is in this process: what a rate limit would add is waiting.
		"--qps", "-1")
	agent, err := startChild(ctx, command, s.o.StepTimeout)
	if err != nil {
		return err
	}
	s.agent = agent
	return nil
}

func (s *scenario) killAgent() error {
	agent := s.agent
	s.agent = nil
	return agent.kill()
}

// begin gives each pod its first statuses and lets the server have them.
func (s *scenario) begin(ctx context.Context) error {
	if err := s.startAgent(ctx); err != nil {
		return err
	}
	s.say("agent runs, process %d", s.agent.pid())
	if err := s.feed.rounds(ctx, s.agent.client, firstRounds); err != nil {
		return err
	}
	if err := s.waitAcked(ctx); err != nil {
		return err
	}
	var err error
	if s.ackedFirst, err = s.acksOnDisk(ctx); err != nil {
		return err
	}
	s.say("%d statuses accepted, all acked by the API server", s.feed.count())
	return nil
}

// crashInOutage kills the agent while it is written to. Some pods don't change in
// the meantime: nothing may be sent for them later.
func (s *scenario) crashInOutage(ctx context.Context) error {
	s.server.NetworkDown()
	s.say("network is down")
	changing := max(1, len(s.pods)*4/5)
	before := s.feed.count()
	burst, client := make(chan error, 1), s.agent.client
	go func() { burst <- s.feed.burst(ctx, client, changing) }()
	err := poll(ctx, burstLimit, func() (bool, error) {
		return s.feed.count()-before >= burstRounds*changing || len(burst) > 0, nil
	})
	if errors.Is(err, errSlow) {
		err = nil // what was written till now will do
	}
	if len(burst) > 0 {
		err = errors.Join(err, errors.New("the writers ended before the agent was killed"))
	}
	// Without an agent the writers end, whatever else went wrong.
	if err := errors.Join(err, s.killAgent(), <-burst); err != nil {
		return err
	}
	s.accepted = s.feed.acceptances()
	s.say("%d more statuses accepted by %d pods, agent killed in the middle", len(s.accepted)-before, changing)
	s.disk, err = readFile(filepath.Join(s.dataDir, journal.FileName))
	if err != nil {
		return err
	}
	s.outdated = s.notOnServer(s.disk.statuses)
	return nil
}

// restart looks at what the next agent has, with the network still down.
func (s *scenario) restart(ctx context.Context) error {
	if err := s.startAgent(ctx); err != nil {
		return err
	}
	s.say("agent runs again, process %d", s.agent.pid())
	records, err := s.agent.client.Records(ctx)
	if err != nil {
		return err
	}
	s.served = make(map[types.UID]journal.Version, len(records))
	for _, r := range records {
		s.served[r.UID] = r.Version
	}
	s.journaled = make(map[statusID]string)
	for event, err := range s.agent.client.Events(ctx, 1) {
		if err != nil {
			return err
		}
		if event.Kind == journal.KindSet.String() && event.Status != nil {
			s.journaled[statusID{event.UID, event.Version}] = event.Status.Message
		}
	}
	s.say("%d statuses are in the journal", len(s.journaled))
	return nil
}

// converge restores the network and waits until the server has all.
func (s *scenario) converge(ctx context.Context) error {
	s.server.ResetRequests()
	if err := s.server.NetworkUp(); err != nil {
		return fmt.Errorf("restore the network: %w", err)
	}
	s.say("network is up")
	begin := time.Now()
	err := s.waitAcked(ctx)
	if err != nil && !errors.Is(err, errSlow) {
		return err
	}
	if err == nil {
		s.converged = time.Since(begin)
		s.say("all acked after %.1fs", s.converged.Seconds())
		// The WATCH follows the LIST, and may come after the last PATCH.
		if err := s.waitWatch(ctx); err != nil {
			return err
		}
	}
	s.requests = s.server.Requests(fakeapi.Match{})
	return s.compare(ctx)
}
