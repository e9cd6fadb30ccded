// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// story turns the events of one pod name, and the starts of the agent between
// them, into sentences. A recreated pod is another life under another UID.
type story struct {
	want    filter
	trimmed bool                      // history before the first event may be gone
	acks    map[types.UID]journal.Ack // nil if they can't be read
	lives   map[types.UID]*life
	before  time.Time // of the event before the one that is told, of whatever pod
	redact  *redactor
}

// life is what the story knows of one UID.
type life struct {
	last       *Event // newest set or finished event
	removed    bool
	readySince time.Time // when the Ready condition was last seen to change
	accepted   time.Time // when the acked version was accepted; zero if not seen
	ack        journal.Ack
	acked      bool
}

// event tells what an event changed, in the order in which a reader asks.
func (t *story) event(e *Event) ([]sentence, error) {
	if e.Kind == "opened" {
		return t.opened(t.redact.event(e), t.before), nil
	}
	if !t.want.concerns(e) {
		return nil, nil
	}
	l, known := t.lives[e.UID]
	if !known {
		l = &life{}
		t.lives[e.UID] = l
		l.ack, l.acked = t.acks[e.UID]
	}
	if err := e.decode(); err != nil {
		return nil, err
	}
	e = t.redact.event(e)
	switch e.Kind {
	case "rejected":
		return []sentence{e.say(happening{"Refused", true, "an update was refused: " + attributes(e)})}, nil
	case "removed":
		l.removed = true
		return []sentence{e.say(happening{"Removed", false, fmt.Sprintf("was removed (%s)", e.Reason)})}, nil
	case "set", "finished":
	default:
		return nil, nil
	}
	if e.Status == nil {
		e.Status = &v1.PodStatus{}
	}
	var out []sentence
	var old *v1.PodStatus
	switch {
	case !known && e.Version > 1 && t.trimmed:
		out = append(out, e.say(happening{"HistoryBegins", false, fmt.Sprintf("the history that is kept begins here, with version %d (uid %s)", e.Version, e.UID)}))
	case !known || l.removed || l.last == nil:
		out = append(out, e.say(happening{"Seen", false, fmt.Sprintf("was first seen (uid %s)", e.UID)}))
	default:
		old = l.last.Status
	}
	for _, h := range l.changes(old, e) {
		out = append(out, e.say(h))
	}
	l.removed, l.last = false, e
	if l.acked && e.Version == l.ack.Version {
		l.accepted = e.Time
	}
	return out, nil
}

// happening is one thing that an event tells.
type happening struct {
	reason  string // one word, as Kubernetes' events have
	warning bool
	text    string
}

func (e *Event) say(h happening) sentence {
	return sentence{Time: e.Time, Sequence: e.Sequence, UID: e.UID, Text: h.text, happening: h}
}

// opened is told only while the pod is there.
func (t *story) opened(e *Event, before time.Time) []sentence {
	alive := func(l *life) bool { return !l.removed }
	if !slices.ContainsFunc(slices.Collect(maps.Values(t.lives)), alive) {
		return nil
	}
	text := fmt.Sprintf("the agent started (epoch %d)", e.Epoch)
	switch e.Attributes[journal.AttrClean] {
	case "false":
		text += " after it had stopped without notice"
	case "true":
		text += " after an orderly stop"
	}
	if gap := e.Time.Sub(before); !before.IsZero() && gap >= time.Second {
		text += fmt.Sprintf("; nothing was recorded for %s before", span(gap))
	}
	if e.Attributes[journal.AttrSuspect] == "true" {
		text += "; the last commit before may be lost"
	}
	return []sentence{e.say(happening{"AgentStarted", e.Attributes[journal.AttrClean] == "false", text})}
}

// changes are the sentences about one status after another.
func (l *life) changes(old *v1.PodStatus, e *Event) []happening {
	var out []happening
	if old == nil || old.Phase != e.Status.Phase {
		text := "phase is " + string(e.Status.Phase)
		if old != nil {
			text = fmt.Sprintf("phase went from %s to %s", old.Phase, e.Status.Phase)
		}
		if why := joinReason(e.Status.Reason, e.Status.Message); why != "" {
			text += " (" + why + ")"
		}
		out = append(out, happening{"Phase" + string(e.Status.Phase), e.Status.Phase == v1.PodFailed, text})
	}
	if e.Reason == journal.ReasonTerminate && e.Kind == "set" {
		out = append(out, happening{"Terminating", false, "was told to terminate"})
	}
	out = append(out, containerChanges(old, e.Status)...)
	if text, ready := l.readiness(old, e); text != "" {
		h := happening{"Ready", false, text}
		if !ready {
			h.reason, h.warning = "NotReady", old != nil
		}
		out = append(out, h)
	}
	if e.Finished && (l.last == nil || !l.last.Finished || l.removed) {
		out = append(out, happening{"Finished", false, "is finished: its resources are reclaimed and its object may be deleted"})
	}
	return out
}

// readiness tells a change of the Ready condition, with its reason and how long
// the state before lasted.
func (l *life) readiness(old *v1.PodStatus, e *Event) (text string, ready bool) {
	now, ok := condition(e.Status, v1.PodReady)
	was, hadOne := condition(old, v1.PodReady)
	if !ok || hadOne && was.Status == now.Status {
		return "", false
	}
	lasted := ""
	if hadOne && !l.readySince.IsZero() {
		lasted = " after " + span(e.Time.Sub(l.readySince))
	}
	l.readySince = e.Time
	if now.Status == v1.ConditionTrue {
		return "became Ready" + lasted, true
	}
	text = "stopped being Ready" + lasted
	if !hadOne {
		text = "is not Ready"
	}
	why := joinReason(now.Reason, now.Message)
	if why == "" {
		if names := unready(e.Status); len(names) > 0 {
			why = "containers not ready: " + strings.Join(names, ", ")
		}
	}
	if why != "" {
		text += ": " + why
	}
	if e.Reason == journal.ReasonReadiness {
		text += " (a readiness result)"
	}
	return text, false
}

func unready(s *v1.PodStatus) []string {
	var names []string
	for _, c := range s.ContainerStatuses {
		if !c.Ready {
			names = append(names, c.Name)
		}
	}
	return names
}

// containerChanges tells restarts, ends and waits, init containers first.
func containerChanges(old, new *v1.PodStatus) []happening {
	var out []happening
	for _, list := range []func(*v1.PodStatus) []v1.ContainerStatus{
		func(s *v1.PodStatus) []v1.ContainerStatus { return s.InitContainerStatuses },
		func(s *v1.PodStatus) []v1.ContainerStatus { return s.ContainerStatuses },
		func(s *v1.PodStatus) []v1.ContainerStatus { return s.EphemeralContainerStatuses },
	} {
		was := map[string]v1.ContainerStatus{}
		if old != nil {
			for _, c := range list(old) {
				was[c.Name] = c
			}
		}
		for _, c := range list(new) {
			if h := containerChange(was[c.Name], c); h.text != "" {
				h.text = "container " + c.Name + " " + h.text
				out = append(out, h)
			}
		}
	}
	return out
}

func containerChange(old, new v1.ContainerStatus) happening {
	switch {
	case new.RestartCount > old.RestartCount:
		text := fmt.Sprintf("restarted (restart %d)", new.RestartCount)
		if t := new.LastTerminationState.Terminated; t != nil {
			text += "; the run before " + termination(t)
			if !t.StartedAt.IsZero() && !t.FinishedAt.IsZero() {
				text += " after " + span(t.FinishedAt.Sub(t.StartedAt.Time))
			}
		}
		if new.State.Running == nil {
			text += "; now it " + containerState(&new)
		}
		return happening{"Restarted", true, text}
	case containerState(&new) != containerState(&old) && containerState(&new) != "":
		if t := new.State.Terminated; t != nil {
			return happening{"Ended", t.ExitCode != 0, containerState(&new)}
		}
		return happening{"Waiting", false, containerState(&new)}
	case new.State.Running != nil && old.State.Running == nil:
		return happening{"Running", false, "runs"}
	default:
		return happening{}
	}
}

// end says how things stand at the end of the journal.
func (t *story) end() []sentence {
	var out []sentence
	for _, l := range t.lives {
		if l.last == nil || l.removed {
			continue
		}
		text := fmt.Sprintf("at the end of the journal: %s, version %d", l.last.Status.Phase, l.last.Version)
		if c, ok := condition(l.last.Status, v1.PodReady); ok {
			text += fmt.Sprintf(", Ready %s", c.Status)
		}
		a := l.ack
		switch {
		case t.acks == nil:
		case !l.acked:
			text += "; the API server has acknowledged no version"
		default:
			text += fmt.Sprintf("; the API server acknowledged version %d at %s", a.Version, a.Time.Format(time.RFC3339))
			if !l.accepted.IsZero() {
				text += fmt.Sprintf(", %s after it was accepted", span(a.Time.Sub(l.accepted)))
			}
		}
		out = append(out, sentence{Time: l.last.Time, Sequence: l.last.Sequence, UID: l.last.UID, Text: text})
	}
	slices.SortFunc(out, func(a, b sentence) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return out
}
