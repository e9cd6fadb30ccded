// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/cli/socket"
	"github.com/statusstore/statusstore/internal/httpapi"
)

// podCall tells the agent something about one pod.
type podCall func(ctx context.Context, client *socket.Client, uid types.UID) (httpapi.CallResult, error)

// newPodCall makes a verb with the argument POD.
func newPodCall(s streams, cmd *cobra.Command, call podCall) *cobra.Command {
	var flags podFlags
	output := newFormat("text", "json")
	cmd.Use += " POD"
	cmd.Args = wantArgs(cobra.ExactArgs(1), "one POD")
	cmd.ValidArgsFunction = completePods(&flags, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := flags.pod(args[0])
		if err != nil {
			return err
		}
		client := flags.client()
		defer client.Close()
		stored, err := client.Pod(cmd.Context(), name.namespace, name.name)
		if err != nil {
			return err
		}
		result, err := call(cmd.Context(), client, stored.Pod.UID)
		if err != nil {
			return err
		}
		return printCall(s.out, result, output.value)
	}
	flags.addFlags(cmd)
	output.addFlag(cmd)
	return cmd
}

func printCall(w io.Writer, result httpapi.CallResult, output string) error {
	if output == "json" {
		return printJSON(w, result)
	}
	note := ""
	if result.Outcome == httpapi.OutcomeUnchanged {
		note = " (unchanged)"
	}
	name := podName{result.Namespace, result.Name}
	return write(w, fmt.Appendf(nil, "%s version %d%s\n", name.shown(), result.Version, note))
}
