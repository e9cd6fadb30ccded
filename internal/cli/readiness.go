// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/cli/socket"
	"github.com/statusstore/statusstore/internal/httpapi"
)

func newReadiness(s streams) *cobra.Command {
	return newProbe(s, &cobra.Command{
		Use:   "readiness",
		Short: "Say whether a container is ready",
		Long:  "Store whether a container is ready, and what follows from it for the pod.",
		Example: `  statusstore readiness web-0 app true
  statusstore readiness shop/web-0 containerd://4f1d false`,
	}, func(cmd *cobra.Command, client *socket.Client, pod *v1.Pod, id string, ready bool) (httpapi.CallResult, error) {
		return client.SetReadiness(cmd.Context(), pod.UID, id, ready)
	})
}
