// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/manager"
)

// TestOpen_JournalBeforeSocket: while another agent has the journal and does not
// serve yet, as in a compaction at its start, the socket's place is left alone,
// whatever lies there.
func TestOpen_JournalBeforeSocket(t *testing.T) {
	c := configFor(shortDir(t))
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		t.Fatal(err)
	}
	other, err := manager.Open(manager.Options{Path: journalPath(c.DataDir), Node: c.Node})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	c.Socket = filepath.Join(c.DataDir, "statusstore.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.Socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.Lstat(c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	c.LockTimeout = 100 * time.Millisecond
	if _, err := begin(t, c); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("got %v, want %v", err, journal.ErrLocked)
	}
	after, err := os.Lstat(c.Socket)
	if err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the socket was touched: %v, %v, before %v", after, err, before)
	}
}
