// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/cli/socket"
	"github.com/statusstore/statusstore/internal/httpapi"
)

func newFinish(s streams) *cobra.Command {
	return newPodCall(s, &cobra.Command{
		Use:   "finish",
		Short: "Say that a pod's resources are reclaimed",
		Long: `Store that nothing of the pod is left on the node. A pod that is being deleted
may then go from the API server; the agent sees to it, after a crash too.
POD is a NAME or NAMESPACE/NAME.`,
		Example: `  statusstore finish web-0`,
	}, func(ctx context.Context, client *socket.Client, uid types.UID) (httpapi.CallResult, error) {
		return client.Finish(ctx, uid)
	})
}
