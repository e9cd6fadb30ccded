// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// summary is a status in a few words for a table.
type summary struct {
	phase    string
	ready    string // containers, as in 1/2
	restarts string // restartCount, for a table
	detail   string // the pod's reason and message, why it isn't ready, containers that don't run
	message  string

	restartCount int
}

func summarise(s *v1.PodStatus) summary {
	if s == nil {
		return summary{}
	}
	ready, restarts := 0, 0
	for _, c := range s.ContainerStatuses {
		if c.Ready {
			ready++
		}
		restarts += int(c.RestartCount)
	}
	var parts []string
	if text := joinReason(s.Reason, s.Message); text != "" {
		parts = append(parts, text)
	}
	if c, ok := condition(s, v1.PodReady); ok && c.Status != v1.ConditionTrue && s.Phase == v1.PodRunning {
		if text := joinReason(c.Reason, c.Message); text != "" {
			parts = append(parts, "not Ready: "+text)
		}
	}
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i := range list {
			if text := containerState(&list[i]); text != "" {
				parts = append(parts, list[i].Name+" "+text)
			}
		}
	}
	return summary{
		phase:    string(s.Phase),
		ready:    fmt.Sprintf("%d/%d", ready, len(s.ContainerStatuses)),
		restarts: strconv.Itoa(restarts),
		detail:   strings.Join(parts, "; "),
		message:  s.Message,

		restartCount: restarts,
	}
}

func joinReason(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// containerState says what a container does unless it simply runs.
func containerState(c *v1.ContainerStatus) string {
	switch {
	case c.State.Terminated != nil:
		return termination(c.State.Terminated)
	case c.State.Waiting != nil:
		return strings.TrimSpace("waits " + joinReason(c.State.Waiting.Reason, c.State.Waiting.Message))
	default:
		return ""
	}
}

func termination(t *v1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with exit code %d", t.ExitCode)
	if t.Signal != 0 {
		text += fmt.Sprintf(" by signal %d", t.Signal)
	}
	if why := joinReason(t.Reason, t.Message); why != "" {
		text += " (" + why + ")"
	}
	return text
}

// shorten cuts text at a character and marks the cut.
func shorten(s string, width int) string {
	if len(s) <= width {
		return s
	}
	n := 0
	for i := range s {
		if n++; n > width {
			return s[:i] + "…"
		}
	}
	return s
}

// condition returns the status of a condition, with its reason and message.
func condition(s *v1.PodStatus, t v1.PodConditionType) (v1.PodCondition, bool) {
	if s != nil {
		for _, c := range s.Conditions {
			if c.Type == t {
				return c, true
			}
		}
	}
	return v1.PodCondition{}, false
}
