// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newCompletion(s streams) *cobra.Command {
	shells := map[string]func(root *cobra.Command) error{
		"bash": func(root *cobra.Command) error { return root.GenBashCompletionV2(s.out, true) },
		"zsh":  func(root *cobra.Command) error { return root.GenZshCompletion(s.out) },
		"fish": func(root *cobra.Command) error { return root.GenFishCompletion(s.out, true) },
	}
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a completion script for a shell",
		Long:  "Print a completion script for a shell. It completes the names of pods too, by asking the agent.",
		Example: `  source <(statusstore completion bash)
  statusstore completion fish > ~/.config/fish/completions/statusstore.fish`,
		Args:      wantArgs(cobra.ExactArgs(1), "bash, zsh or fish"),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			generate, ok := shells[args[0]]
			if !ok {
				return usagef("completion: want bash, zsh or fish, got %q", args[0])
			}
			return generate(cmd.Root())
		},
	}
}

// completionTimeout bounds the wait of somebody who has pressed the tab key.
const completionTimeout = time.Second

// completePods completes the first n arguments with names of stored pods. An
// agent that doesn't answer leads to no completions, never to an error.
func completePods(flags *podFlags, n int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		client := flags.client()
		defer client.Close()
		which := selected{namespace: flags.namespace}
		qualified := strings.Contains(begun, "/") // NAMESPACE/NAME
		if qualified {
			which.namespace = ""
		}
		data, err := client.Get(ctx, which.listPath(), nil, "application/json")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list struct {
			Items []metav1.PartialObjectMetadata `json:"items"`
		}
		if json.Unmarshal(data, &list) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := make([]cobra.Completion, len(list.Items))
		for i, item := range list.Items {
			names[i] = item.Name
			if qualified {
				names[i] = item.Namespace + "/" + item.Name
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
