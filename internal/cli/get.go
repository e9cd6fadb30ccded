// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/internal/cli/socket"
	"github.com/statusstore/statusstore/internal/httpapi"
)

// selected says which pods get shows.
type selected struct {
	namespace string // empty: all
	name      string // empty: all
	labels    string
}

func newGet(s streams) *cobra.Command {
	var flags podFlags
	var allNamespaces, watch bool
	var labels string
	output := newFormat("table", "wide", "json", "yaml", "name")
	cmd := &cobra.Command{
		Use:   "get [NAME]",
		Short: "Show stored pods with their statuses",
		Long: `Show the pods whose statuses are stored, in one namespace or, with -A, in all.
With -w it goes on showing changes until it is interrupted.`,
		Example: `  statusstore get -A
  statusstore get web-0 -n shop -o yaml
  statusstore get -A -w`,
		Args:              wantArgs(cobra.MaximumNArgs(1), "at most one NAME"),
		ValidArgsFunction: completePods(&flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			which := selected{namespace: flags.namespace, labels: labels}
			if allNamespaces {
				which.namespace = ""
			}
			if len(args) == 1 {
				if allNamespaces {
					return usagef("get: a pod can't be named across all namespaces; leave out -A")
				}
				if labels != "" {
					return usagef("get: NAME and --selector exclude each other")
				}
				pod, err := flags.pod(args[0])
				if err != nil {
					return err
				}
				which.namespace, which.name = pod.namespace, pod.name
			}
			client := flags.client()
			defer client.Close()
			g := getter{client: client, which: which, printer: newPrinter(s.out, output.value, allNamespaces)}
			if watch {
				return g.watch(cmd.Context())
			}
			_, err := g.list(cmd.Context())
			if err == nil && g.printer.empty() {
				fmt.Fprintln(s.err, which.nothing())
			}
			return err
		},
	}
	flags.addFlags(cmd)
	cmd.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "the pods of all namespaces")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "go on and show changes")
	cmd.Flags().StringVarP(&labels, "selector", "l", "", "label `selector`")
	output.addFlag(cmd)
	return cmd
}

func (w selected) nothing() string {
	if w.namespace == "" {
		return "No pods found."
	}
	return fmt.Sprintf("No pods found in namespace %s.", escape(w.namespace))
}

// path is that of the one pod or of the list.
func (w selected) path() string {
	if w.name != "" {
		return httpapi.PodPath(w.namespace, w.name)
	}
	return w.listPath()
}

func (w selected) listPath() string {
	if w.namespace == "" {
		return "/api/v1/pods"
	}
	return "/api/v1/namespaces/" + url.PathEscape(w.namespace) + "/pods"
}

func (w selected) query() url.Values {
	query := url.Values{}
	if w.labels != "" {
		query.Set("labelSelector", w.labels)
	}
	return query
}

// getter fetches pods and hands them to its printer.
type getter struct {
	client  *socket.Client
	which   selected
	printer *printer
}

// list prints what there is and returns the resource version.
func (g *getter) list(ctx context.Context) (string, error) {
	data, err := g.client.Get(ctx, g.which.path(), g.which.query(), g.printer.accept())
	if err != nil {
		return "", err
	}
	var meta metav1.PartialObjectMetadata
	if err := json.Unmarshal(data, &meta); err != nil {
		return "", fmt.Errorf("decode answer: %w", err)
	}
	return meta.ResourceVersion, g.printer.print(data)
}
