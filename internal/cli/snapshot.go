// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/statusstore/statusstore/internal/cli/socket"
	"github.com/statusstore/statusstore/journal"
)

func newSnapshot(s streams) *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "snapshot FILE",
		Short: "Copy the journal of the running agent",
		Long: `Write a consistent, verified copy of the live journal to FILE, which must not
exist. The agent goes on meanwhile. Only the owner can read the copy; it can be
read with journal-dump, and put in the place of a lost journal.`,
		Example: `  statusstore snapshot /backup/journal.db`,
		Args:    wantArgs(cobra.ExactArgs(1), "one FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client := conn.client()
			defer client.Close()
			c, err := snapshot(cmd.Context(), client, args[0])
			if err != nil {
				return fmt.Errorf("snapshot to %s: %w", args[0], err)
			}
			return write(s.out, fmt.Appendf(nil, "%s: %d events, head %d, verified\n", escape(args[0]), c.events, c.head))
		},
	}
	conn.addFlags(cmd)
	return cmd
}

// copied says what a copy holds.
type copied struct {
	events uint64
	head   journal.Sequence
}

var errExists = fmt.Errorf("%w; a snapshot overwrites nothing", fs.ErrExist)

// snapshot fetches the copy under another name and gives it its own only when it
// is whole and on disk.
func snapshot(ctx context.Context, client *socket.Client, path string) (c copied, err error) {
	if _, err := os.Lstat(path); err == nil {
		return c, errExists
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".part-") // mode 0600
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	err = client.Snapshot(ctx, f)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return c, err
	}
	if c, err = verifyFile(ctx, f.Name()); err != nil {
		return c, err
	}
	// Unlike rename, link never replaces a file that has come meanwhile.
	if err := os.Link(f.Name(), path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return c, errExists
		}
		return c, err
	}
	return c, syncDir(filepath.Dir(path))
}

func verifyFile(ctx context.Context, path string) (c copied, err error) {
	r, err := journal.OpenReadOnly(path, journal.ReadOptions{})
	if err != nil {
		return copied{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	result, err := r.Verify(ctx, nil)
	if err == nil && result.Problems > 0 {
		err = fmt.Errorf("the copy has %d problems: %w", result.Problems, journal.ErrCorrupt)
	}
	return copied{events: result.Events, head: r.Head()}, err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
