// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/statusstore/statusstore/internal/dump/scan"
	"github.com/statusstore/statusstore/journal"
)

// completionTime bounds what a TAB may take.
const completionTime = 2 * time.Second

// journalOf is the journal that a command line being typed means: its first
// argument that is one, or what the agent's socket lies beside.
func journalOf(c *cobra.Command, args []string) (*source, bool) {
	for _, arg := range args {
		path, err := journalIn(arg)
		if err != nil {
			continue
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if fast, err := scan.Open(path); err == nil {
			return &source{fast: fast, name: path, path: path}, true
		}
	}
	socket, _ := c.Flags().GetString("socket")
	if socket == "" {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionTime)
	defer cancel()
	src, err := place{socket: socket}.open(ctx, nil)
	return src, err == nil
}

// podsOf are the names of all pods in the journal, NS/NAME.
func podsOf(s *source) []string {
	return names(s, func(r *scan.Record) string { return string(r.Namespace) + "/" + string(r.Name) })
}

func names(s *source, of func(*scan.Record) string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	found := map[string]bool{}
	// What is damaged, and what takes too long, is not offered.
	_ = s.records(ctx, scan.Options{Keep: func(r *scan.Record) bool { return r.Kind != journal.KindOpened }}, func(error) {},
		func(r *scan.Record) bool { found[of(r)] = true; return true })
	return slices.Sorted(maps.Keys(found))
}

func complete(c *cobra.Command, args []string, typed string, of func(*scan.Record) string) ([]string, cobra.ShellCompDirective) {
	src, ok := journalOf(c, args)
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer src.Close()
	var fit []string
	for _, name := range names(src, of) {
		if short, ok := strings.CutPrefix(name, "default/"); ok && !strings.Contains(typed, "/") && strings.HasPrefix(short, typed) {
			name = short
		}
		if strings.HasPrefix(name, typed) {
			fit = append(fit, escape(name))
		}
	}
	return fit, cobra.ShellCompDirectiveNoFileComp
}

func completePod(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return complete(c, args, typed, func(r *scan.Record) string { return string(r.Namespace) + "/" + string(r.Name) })
}

func completeUID(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return complete(c, args, typed, func(r *scan.Record) string { return string(r.UID) })
}

// completeFile offers files, the first argument of most verbs.
func completeFile(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

func completeFileThenPod(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	socket, _ := c.Flags().GetString("socket")
	if len(args) == 0 && socket == "" {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return completePod(c, args, typed)
}

// socketBeside is the socket that an agent would serve for a journal.
func socketBeside(path string) string { return filepath.Join(filepath.Dir(path), socketName) }
