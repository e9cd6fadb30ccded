// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// newClient returns a client for the API server and its address; nil without one.
func newClient(c Config) (kubernetes.Interface, string, error) {
	config, err := restConfig(c.Kubeconfig)
	if err != nil || config == nil {
		return nil, "", err
	}
	config.QPS, config.Burst = c.QPS, c.Burst
	config.UserAgent = userAgent(c.Software)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, "", fmt.Errorf("API server client: %w", err)
	}
	return client, config.Host, nil
}

// restConfig returns nil when nothing tells of an API server.
func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		return fromKubeconfig(kubeconfig)
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("in-cluster configuration: %w", err)
	}
	return config, nil
}

// fromKubeconfig reads that file and nothing else: with clientcmd.BuildConfigFromFlags
// an empty one in a pod would mean the pod's own service account.
func fromKubeconfig(path string) (*rest.Config, error) {
	var config *rest.Config
	loaded, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}).Load()
	if err == nil {
		config, err = clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	}
	switch {
	case err == nil:
		return config, nil
	case !clientcmd.IsEmptyConfig(err): // whose remedy is a variable that nobody reads here
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	case len(loaded.Clusters) > 0:
		return nil, fmt.Errorf("kubeconfig %s has no usable current-context; run \"kubectl config --kubeconfig %s use-context NAME\"", path, path)
	default:
		return nil, fmt.Errorf("kubeconfig %s names no cluster; give --kubeconfig a file that kubectl can use", path)
	}
}

// userAgent is "statusstore/v1.2.3".
func userAgent(software string) string {
	version := strings.TrimPrefix(software, "statusstore")
	version = strings.Trim(version, " /")
	if version == "" {
		version = "devel"
	}
	return "statusstore/" + strings.ReplaceAll(version, " ", "-")
}
