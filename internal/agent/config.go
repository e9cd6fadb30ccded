// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/statusstore/statusstore/journal"
)

// Mode says what the agent is for.
type Mode string

// The modes.
const (
	// ModeManage: callers set statuses, the syncer sends them.
	ModeManage Mode = "manage"
	// ModeRecord: the agent journals the status changes that it sees on the API
	// server, and writes nothing to it.
	ModeRecord Mode = "record"
)

// SocketName is the socket's name inside a data directory.
const SocketName = "statusstore.sock"

// Config sets up an agent. DataDir is required, and Node with an API server; the
// zero value of the others is the recommended setup.
type Config struct {
	// DataDir holds the journal. It is made with mode 0700 if it is missing.
	DataDir string
	// Node is the name of the node whose pods are stored.
	Node string
	// AllNodes records the pods of all nodes, in record mode and without Node.
	AllNodes bool
	// Mode is ModeManage by default.
	Mode Mode

	// Kubeconfig names a file. Empty: the service account of the pod that the
	// agent runs in, or, without one, no syncing.
	Kubeconfig string
	// QPS and Burst bound requests to the API server. Default 50 and 100;
	// negative QPS is no limit.
	QPS   float32
	Burst int
	// Workers is how many pods are sent at the same time. Default 10.
	Workers int
	// PassInterval is the time between full passes. Default 10 s.
	PassInterval time.Duration
	// RequestTimeout bounds each request to the API server. Default 10 s.
	RequestTimeout time.Duration

	// Socket is the path of the unix socket. Default: SocketName in DataDir.
	Socket string
	// SocketGroup is the name or number of a group whose members may use the
	// socket, which then has mode 0660. Empty: only root and the agent's user. The
	// data directory is closed to others, so the socket should lie elsewhere.
	SocketGroup string
	// AllowUsers and AllowGroups name, by name or number, who may use the socket
	// beside root and the agent's user; ReadOnlyUsers and ReadOnlyGroups name who
	// may only read. The most specific counts: a user before its groups, and the
	// role that may do less. With any of them, and without SocketGroup, the
	// socket has mode 0666 and the peer's credentials decide; with SocketGroup the
	// lists choose among its members. Linux only.
	AllowUsers, AllowGroups       []string
	ReadOnlyUsers, ReadOnlyGroups []string
	// Listen is a TCP address for reading only, such as "127.0.0.1:8080". Empty:
	// none. Addresses that are not loopback need ListenRemote: there is no
	// authentication.
	Listen       string
	ListenRemote bool
	// Profiling serves /debug/pprof on the socket, for those who may write.
	Profiling bool

	// Retention bounds the history in the journal.
	Retention journal.Retention
	// LockTimeout bounds the wait for a journal that is in use. Default 1 s.
	LockTimeout time.Duration
	// MoveDamagedAside renames a journal that can't be read, once, and starts
	// with a new one.
	MoveDamagedAside bool

	// DrainTimeout bounds the sending of pending statuses at the end. Default 5 s.
	DrainTimeout time.Duration
	// ShutdownTimeout bounds all of the end. Default 10 s.
	ShutdownTimeout time.Duration

	// Software is recorded in the journal and shown to the API server, such as
	// "statusstore v1.2.3".
	Software string
	// Logger receives what an operator should know. Nil: nothing is logged.
	Logger *slog.Logger
	// Ready is called once, when the socket answers.
	Ready func(socket string)
}

const (
	defaultQPS             = 50
	defaultBurst           = 100
	defaultWorkers         = 10
	defaultPassInterval    = 10 * time.Second
	defaultRequestTimeout  = 10 * time.Second
	defaultLockTimeout     = time.Second
	defaultDrainTimeout    = 5 * time.Second
	defaultShutdownTimeout = 10 * time.Second
	defaultHistory         = 40 // as the journal's own
	defaultHistoryBytes    = 256 << 20
)

// WithDefaults fills in what is zero and has a default, and refuses numbers that
// make no sense. It looks at the settings only. Errors: ErrConfig.
func (c Config) WithDefaults() (Config, error) {
	if c.DataDir != "" {
		dir, err := filepath.Abs(c.DataDir)
		if err != nil {
			return c, fmt.Errorf("%w: data directory: %w", ErrConfig, err)
		}
		c.DataDir = dir
		if c.Socket == "" {
			c.Socket = filepath.Join(dir, SocketName)
		}
	}
	if c.Mode == "" {
		c.Mode = ModeManage
	}
	var err error
	if q := float64(c.QPS); math.IsNaN(q) || math.IsInf(q, 0) {
		err = errors.Join(err, fmt.Errorf("%w: --qps %v is no number; negative is no limit", ErrConfig, q))
	}
	if c.QPS == 0 {
		c.QPS = defaultQPS
	}
	return c, errors.Join(err,
		setDefault("--burst", &c.Burst, defaultBurst),
		setDefault("--workers", &c.Workers, defaultWorkers),
		setDefault("--history", &c.Retention.EventsPerPod, defaultHistory),
		setDefault("--history-bytes", &c.Retention.MaxBytes, defaultHistoryBytes),
		setDefault("--pass-interval", &c.PassInterval, defaultPassInterval),
		setDefault("--request-timeout", &c.RequestTimeout, defaultRequestTimeout),
		setDefault("--lock-timeout", &c.LockTimeout, defaultLockTimeout),
		setDefault("--drain-timeout", &c.DrainTimeout, defaultDrainTimeout),
		setDefault("--shutdown-timeout", &c.ShutdownTimeout, defaultShutdownTimeout),
	)
}

// setDefault replaces zero and refuses what is below.
func setDefault[N int | int64 | time.Duration](field string, value *N, standard N) error {
	if *value < 0 {
		return fmt.Errorf("%w: %s %v is negative", ErrConfig, field, *value)
	}
	*value = cmp.Or(*value, standard)
	return nil
}

// complete is the configuration as the agent uses it.
func (c Config) complete() (Config, error) {
	c, err := c.WithDefaults()
	if err != nil {
		return c, err
	}
	if c.DataDir == "" {
		return c, fmt.Errorf("%w: --data-dir is required", ErrConfig)
	}
	if c.Mode != ModeManage && c.Mode != ModeRecord {
		return c, fmt.Errorf("%w: --mode %q is neither %q nor %q", ErrConfig, c.Mode, ModeManage, ModeRecord)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Ready == nil {
		c.Ready = func(string) {}
	}
	return c, nil
}

// allNodes stands for the node in the journal of an agent that records all of
// them. It is no node's name, so that no agent of one node opens that journal.
const allNodes = "*"

func (c Config) journalNode() string {
	if c.AllNodes {
		return allNodes
	}
	return c.Node
}

// check finds settings that can't work. It is asked before the data directory is
// touched: a start that fails must not leave a trace in the journal.
func (c Config) check() error {
	switch {
	case c.AllNodes && c.Mode != ModeRecord:
		return fmt.Errorf("%w: all nodes can only be recorded; use --mode record", ErrConfig)
	case c.AllNodes && c.Node != "":
		return fmt.Errorf("%w: a node and all nodes exclude each other", ErrConfig)
	}
	if c.Node != "" {
		if problems := validation.IsDNS1123Subdomain(c.Node); len(problems) > 0 {
			return fmt.Errorf("%w: --node %q: %s", ErrConfig, c.Node, strings.Join(problems, "; "))
		}
	}
	return errors.Join(checkListen(c), checkSocket(c), checkLists(c))
}

// checkLists refuses lists where nobody would look at them.
func checkLists(c Config) error {
	if n := len(c.AllowUsers) + len(c.AllowGroups) + len(c.ReadOnlyUsers) + len(c.ReadOnlyGroups); n == 0 || runtime.GOOS == "linux" {
		return nil
	}
	return fmt.Errorf("%w: users and groups can be told apart on Linux only; use a socket group", ErrConfig)
}
