// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// ErrOptions: an option is out of its bounds.
var ErrOptions = errors.New("bad option")

// Options set up a demo. The zero value is the recommended setup.
type Options struct {
	// Pods is how many there are. Default 50, at most 1000.
	Pods int
	// DataDir keeps the journal after the demo. It must be empty or missing.
	// Default: a temporary directory, removed at the end.
	DataDir string
	// Agent is the command that runs an agent, to which flags are appended.
	// Default: this program with "run".
	Agent []string
	// Progress gets a line for each step. Nil: nobody is told.
	Progress io.Writer
	// StepTimeout bounds the wait of each step. Default 10 s.
	StepTimeout time.Duration
}

const maxPods = 1000

func (o Options) withDefaults() (Options, error) {
	if o.Pods == 0 {
		o.Pods = 50
	}
	if o.Pods < 1 || o.Pods > maxPods {
		return o, fmt.Errorf("%w: %d pods, want 1 to %d", ErrOptions, o.Pods, maxPods)
	}
	if o.DataDir != "" {
		entries, err := os.ReadDir(o.DataDir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return o, fmt.Errorf("data directory: %w", err)
		}
		if len(entries) > 0 {
			return o, fmt.Errorf("%w: data directory %s is not empty; the demo needs one of its own", ErrOptions, o.DataDir)
		}
	}
	if len(o.Agent) == 0 {
		self, err := os.Executable()
		if err != nil {
			return o, fmt.Errorf("find this program: %w", err)
		}
		o.Agent = []string{self, "run"}
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.StepTimeout == 0 {
		o.StepTimeout = 10 * time.Second
	}
	return o, nil
}
