// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/cli/socket"
	"github.com/statusstore/statusstore/internal/httpapi"
)

func newTerminate(s streams) *cobra.Command {
	return newPodCall(s, &cobra.Command{
		Use:   "terminate",
		Short: "Say that a pod's containers have ended for good",
		Long: `Give each container that isn't shown as terminated a terminated state, and the
pod a terminal phase that follows from them. POD is a NAME or NAMESPACE/NAME.`,
		Example: `  statusstore terminate web-0
  statusstore terminate shop/web-0`,
	}, func(ctx context.Context, client *socket.Client, uid types.UID) (httpapi.CallResult, error) {
		return client.Terminate(ctx, uid)
	})
}
