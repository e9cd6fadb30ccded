// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/statusstore/statusstore/internal/cli/socket"
)

func newSet(s streams) *cobra.Command {
	var flags podFlags
	var file string
	output := newFormat("text", "json")
	cmd := &cobra.Command{
		Use:   "set -f FILE",
		Short: "Store the statuses in Pod manifests",
		Long: `Store the status in each Pod manifest of FILE ("-" is standard input): YAML or
JSON, any number of documents, lists too. The whole file is read before
anything is stored. Each line that is printed stands for a status that is on
disk.

A manifest needs metadata.name, metadata.uid and status.phase. One without
metadata.namespace is in the namespace of -n; with -n, one in another namespace
is an error.`,
		Example: `  kubectl get pods --field-selector spec.nodeName=node-1 -A -o json | statusstore set -f -
  statusstore set -f web-0.yaml`,
		Args: wantArgs(cobra.NoArgs, "no arguments, only -f FILE"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usagef("set: -f FILE is required")
			}
			found, err := readManifestFile(s.in, file, flags.namespace)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("namespace") {
				if err := found.wantNamespace(flags.namespace); err != nil {
					return fmt.Errorf("read manifests from %s: %w", file, err)
				}
			}
			for _, w := range found.warnings {
				fmt.Fprintf(s.err, "statusstore: warning: %s\n", escape(w))
			}
			client := flags.client()
			defer client.Close()
			return setAll(cmd.Context(), s, client, found, output.value)
		},
	}
	flags.addFlags(cmd)
	cmd.Flags().StringVarP(&file, "filename", "f", "", "`file` with Pod manifests, - for standard input")
	output.addFlag(cmd)
	return cmd
}

func readManifestFile(stdin io.Reader, file, namespace string) (manifests, error) {
	r := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return manifests{}, fmt.Errorf("read manifests: %w", err)
		}
		defer f.Close()
		r = f
	}
	found, err := readManifests(r, namespace)
	if err != nil {
		return manifests{}, fmt.Errorf("read manifests from %s: %w", file, err)
	}
	return found, nil
}

// setAll stores one status after the other. A refused one doesn't keep the others
// from being stored, but an agent that is gone does.
func setAll(ctx context.Context, s streams, client *socket.Client, found manifests, output string) error {
	results := make([]changeRecord, 0, len(found.pods))
	var failed error
	for _, pod := range found.pods {
		name := podName{pod.Namespace, pod.Name}
		stored, err := client.SetStatus(ctx, pod)
		if err != nil && !isRefusal(err) {
			failed = fmt.Errorf("pod %s: %w", name, err)
			break
		}
		if err != nil {
			failed = errReported
			fmt.Fprintf(s.err, "statusstore: pod %s: %s\n", escape(name.String()), oneLine(err))
			continue
		}
		if output == "text" {
			if err := write(s.out, fmt.Appendf(nil, "%s version %d\n", name.shown(), stored.Version)); err != nil {
				return err
			}
		}
		results = append(results, newChangeRecord(name, pod.UID, stored))
	}
	if output == "json" {
		if err := printJSON(s.out, map[string]any{"pods": results}); err != nil {
			return err
		}
	}
	return failed
}
