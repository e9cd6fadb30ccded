// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/internal/cli/socket"
	"github.com/statusstore/statusstore/internal/httpapi"
)

// probeCall tells the agent the result of a probe of one container.
type probeCall func(cmd *cobra.Command, client *socket.Client, pod *v1.Pod, containerID string, value bool) (httpapi.CallResult, error)

// newProbe makes a verb with the arguments POD CONTAINER true|false.
func newProbe(s streams, cmd *cobra.Command, call probeCall) *cobra.Command {
	var flags podFlags
	output := newFormat("text", "json")
	cmd.Use += " POD CONTAINER true|false"
	cmd.Long += `

POD is a NAME or NAMESPACE/NAME. CONTAINER is its name or its full ID, such as
containerd://4f1d….`
	cmd.Args = wantArgs(cobra.ExactArgs(3), "POD CONTAINER true|false")
	cmd.ValidArgsFunction = completePods(&flags, 1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := flags.pod(args[0])
		if err != nil {
			return err
		}
		value, err := strconv.ParseBool(args[2])
		if err != nil {
			return usagef("%s: want true or false, got %q", cmd.Name(), args[2])
		}
		client := flags.client()
		defer client.Close()
		stored, err := client.Pod(cmd.Context(), name.namespace, name.name)
		if err != nil {
			return err
		}
		id, err := findContainer(stored.Pod, args[1])
		if err != nil {
			return fmt.Errorf("pod %s: %w", name, err)
		}
		result, err := call(cmd, client, stored.Pod, id, value)
		if err != nil {
			return err
		}
		return printCall(s.out, result, output.value)
	}
	flags.addFlags(cmd)
	output.addFlag(cmd)
	return cmd
}

// findContainer returns the ID of the container that has this name or ID in the
// pod's status.
func findContainer(pod *v1.Pod, wanted string) (string, error) {
	all := slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses)
	var names []string
	for _, c := range all {
		switch {
		case c.ContainerID == wanted && wanted != "":
			return wanted, nil
		case c.Name == wanted && c.ContainerID == "":
			return "", fmt.Errorf("container %q has no ID in the stored status yet: it was never started", wanted)
		case c.Name == wanted:
			return c.ContainerID, nil
		}
		names = append(names, c.Name)
	}
	if strings.Contains(wanted, "://") {
		return "", fmt.Errorf("no container with ID %q in the stored status", wanted)
	}
	if len(names) == 0 {
		return "", errors.New("the stored status has no containers")
	}
	return "", fmt.Errorf("no container %q in the stored status, only %s", wanted, strings.Join(names, ", "))
}
