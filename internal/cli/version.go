// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set by the linker of a release build:
// -X github.com/statusstore/statusstore/internal/cli.release=v1.2.3
var release string

// buildInfo is what version shows.
type buildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"` // of the commit
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func readBuildInfo() buildInfo {
	b := buildInfo{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.Version = cmp.Or(b.Version, info.Main.Version)
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Time = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	b.Version = cmp.Or(b.Version, "(devel)")
	return b
}

func newVersion(s streams) *cobra.Command {
	output := newFormat("text", "json")
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this program",
		Example: `  statusstore version -o json`,
		Args:    wantArgs(cobra.NoArgs, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			b := readBuildInfo()
			if output.value == "json" {
				return printJSON(s.out, b)
			}
			return write(s.out, fmt.Appendf(nil, "statusstore %s (%s, %s)\n", b.Version, b.Go, b.Platform))
		},
	}
	output.addFlag(cmd)
	return cmd
}
