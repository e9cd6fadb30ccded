// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/fakeapi"
	"github.com/statusstore/statusstore/journal"
)

// crashIdle kills the agent when nothing is pending. That the next one sends
// nothing would not prove that acks are stored: it compares with the server
// anyway. So the file and the next agent are asked before the network is back.
func (s *scenario) crashIdle(ctx context.Context) error {
	if s.converged == 0 {
		return nil // the verdict is known already
	}
	var err error
	if s.ackedBefore, err = s.acksOnDisk(ctx); err != nil {
		return err
	}
	if err := s.killAgent(); err != nil {
		return err
	}
	s.server.NetworkDown()
	disk, err := readFile(filepath.Join(s.dataDir, journal.FileName))
	if err != nil {
		return err
	}
	s.ackedOnDisk = disk.acked
	if err := s.startAgent(ctx); err != nil {
		return err
	}
	if s.ackedAfter, err = s.ackedVersions(ctx); err != nil {
		return err
	}
	status, err := s.agent.client.Status(ctx)
	if err != nil {
		return err
	}
	s.behindAfter = status.AckedVersionsBehind
	s.say("agent killed with nothing pending, and started again without network: %d of %d acks known", len(s.ackedAfter), len(s.ackedBefore))
	return s.restoreIdle(ctx)
}

func (s *scenario) waitWatch(ctx context.Context) error {
	err := poll(ctx, s.o.StepTimeout, func() (bool, error) { return s.server.Count(fakeapi.Watch) > 0, nil })
	if err != nil {
		return fmt.Errorf("wait for the agent's WATCH: %w", err)
	}
	return nil
}

// restoreIdle restores the network and sees what is sent. A new status for one
// pod shows when the agent is through with what it had to compare: it has its
// turn after the others.
func (s *scenario) restoreIdle(ctx context.Context) error {
	s.server.ResetRequests()
	if err := s.server.NetworkUp(); err != nil {
		return fmt.Errorf("restore the network: %w", err)
	}
	if err := s.waitWatch(ctx); err != nil {
		return err
	}
	probe := s.pods[len(s.pods)-1]
	if err := s.feed.next(ctx, s.agent.client, probe); err != nil {
		return fmt.Errorf("write one more status: %w", err)
	}
	if err := s.waitAcked(ctx); err != nil {
		return err
	}
	own := 1 // the probe's PATCH is wanted
	for _, q := range s.server.Requests(fakeapi.Match{}) {
		if q.Verb == fakeapi.Patch && q.Name == probe.Name && own > 0 {
			own--
			continue
		}
		s.idleRequests = append(s.idleRequests, q)
	}
	s.say("network is up, %s", verbText(verbs(s.idleRequests)))
	return nil
}

// end stops the agent in an orderly way.
func (s *scenario) end(context.Context) error {
	agent := s.agent
	s.agent = nil
	if err := agent.terminate(s.o.StepTimeout); err != nil {
		return err
	}
	s.say("agent stopped")
	return nil
}

// compare finds the pods whose status on the server is not the one that was
// accepted last. A status that was on its way when the agent was killed may be
// in its place: it was sent, and either outcome is right.
func (s *scenario) compare(ctx context.Context) error {
	for _, pod := range s.pods {
		last, sent := s.feed.newest(pod.UID)
		want := last.Pod.Status
		stored, err := s.agent.client.Pod(ctx, pod.Namespace, pod.Name)
		if apierrors.IsNotFound(err) {
			s.final = append(s.final, pod.Name+" is not stored")
			continue
		}
		if err != nil {
			return err
		}
		if stored.Version > last.Version {
			if want = stored.Pod.Status; want.Message != message(sent) {
				s.final = append(s.final, pod.Name+": stored is "+want.Message)
				continue
			}
		}
		live, ok := s.server.Pod(pod.Namespace, pod.Name)
		if !ok {
			s.final = append(s.final, pod.Name+" is gone")
			continue
		}
		if !sameStatus(want, live.Status) {
			s.final = append(s.final, fmt.Sprintf("%s: %s, want %s", pod.Name, live.Status.Message, want.Message))
		}
	}
	return nil
}

// waitAcked waits until nothing is pending.
func (s *scenario) waitAcked(ctx context.Context) error {
	pending := 0
	err := poll(ctx, s.o.StepTimeout, func() (bool, error) {
		status, err := s.agent.client.Status(ctx)
		pending = status.Pending
		return err == nil && pending == 0 && status.Pods == len(s.pods), err
	})
	if err != nil {
		return fmt.Errorf("wait until all is acked: %w (%d pods pending)", err, pending)
	}
	return nil
}

// ackedVersions asks the agent.
func (s *scenario) ackedVersions(ctx context.Context) (map[types.UID]journal.Version, error) {
	records, err := s.agent.client.Records(ctx)
	if err != nil {
		return nil, err
	}
	acked := make(map[types.UID]journal.Version, len(records))
	for _, r := range records {
		if r.AckedVersion > 0 {
			acked[r.UID] = r.AckedVersion
		}
	}
	return acked, nil
}

// acksOnDisk returns what the agent shows as acked, after waiting until a copy of
// its file has that too. If it takes too long, the verdict will say so.
func (s *scenario) acksOnDisk(ctx context.Context) (map[types.UID]journal.Version, error) {
	acked, err := s.ackedVersions(ctx)
	if err != nil {
		return nil, err
	}
	err = poll(ctx, ackFlush, func() (bool, error) {
		disk, err := s.readCopy(ctx)
		if err != nil {
			return false, err
		}
		for uid, version := range acked {
			if disk.acked[uid] < version {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil && !errors.Is(err, errSlow) {
		return nil, err
	}
	return acked, nil
}

// notOnServer names the pods whose newest stored status the server doesn't have.
func (s *scenario) notOnServer(stored map[types.UID]*v1.PodStatus) map[string]bool {
	names := make(map[string]bool)
	for _, pod := range s.pods {
		live, ok := s.server.Pod(pod.Namespace, pod.Name)
		status, known := stored[pod.UID]
		if ok && known && !sameStatus(*status, live.Status) {
			names[pod.Name] = true
		}
	}
	return names
}
