// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/cli/socket"
	"github.com/statusstore/statusstore/internal/httpapi"
)

func newStartup(s streams) *cobra.Command {
	return newProbe(s, &cobra.Command{
		Use:     "startup",
		Short:   "Say whether a container has started",
		Long:    "Store whether a container has started, as its startup probe says.",
		Example: `  statusstore startup web-0 app true`,
	}, func(cmd *cobra.Command, client *socket.Client, pod *v1.Pod, id string, started bool) (httpapi.CallResult, error) {
		return client.SetStartup(cmd.Context(), pod.UID, id, started)
	})
}
