// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/statusstore/statusstore/internal/agent"
	"github.com/statusstore/statusstore/internal/cli/socket"
)

// defaultSocket is where the agent of a node package is expected.
const defaultSocket = "/run/statusstore/" + agent.SocketName

// connection are the flags that say which agent is meant.
type connection struct{ socket, dataDir string }

func (c *connection) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.socket, "socket", "", "unix `path` of the agent's socket (default $STATUSSTORE_SOCKET or "+defaultSocket+")")
	cmd.Flags().StringVar(&c.dataDir, "data-dir", "", "data `directory` of the agent, in place of --socket")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if c.socket != "" && c.dataDir != "" {
			return usagef("%s: --socket and --data-dir both say which agent is meant; give one of them", cmd.Name())
		}
		return nil
	}
}

// path picks the most specific of what was said.
func (c *connection) path() string {
	inDir := func(dir string) string {
		if dir == "" {
			return ""
		}
		return filepath.Join(dir, agent.SocketName)
	}
	return cmp.Or(c.socket, inDir(c.dataDir),
		os.Getenv("STATUSSTORE_SOCKET"), inDir(os.Getenv("STATUSSTORE_DATA_DIR")), defaultSocket)
}

func (c *connection) client() *socket.Client { return socket.New(c.path()) }

const defaultNamespace = "default"

// podFlags are the connection and the namespace of the pods that are named.
type podFlags struct {
	connection
	namespace string
}

func (p *podFlags) addFlags(cmd *cobra.Command) {
	p.connection.addFlags(cmd)
	cmd.Flags().StringVarP(&p.namespace, "namespace", "n", defaultNamespace, "`namespace` of the pod")
}

// podName is a pod as it is given on the command line.
type podName struct{ namespace, name string }

func (p podName) String() string { return p.namespace + "/" + p.name }

// shown is the pod as writing commands print it: as kubectl does, and with the
// namespace unless it is the default one. It can be given back as a POD.
func (p podName) shown() string {
	if p.namespace == defaultNamespace {
		return "pod/" + escape(p.name)
	}
	return "pod/" + escape(p.String())
}

// pod reads NAME or NS/NAME, with or without pod/ before it; the second form wins over -n.
func (p *podFlags) pod(arg string) (podName, error) {
	arg = strings.TrimPrefix(arg, "pod/")
	namespace, name, found := strings.Cut(arg, "/")
	if !found {
		namespace, name = p.namespace, arg
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return podName{}, usagef("pod %q: want NAME or NAMESPACE/NAME", arg)
	}
	return podName{namespace, name}, nil
}
