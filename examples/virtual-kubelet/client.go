// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/statusstore/statusstore/manager"
)

// podsOfStore is the client that the framework is given for pods. It has two reasons to
// write: a status, and the deletion of a pod that has ended. Both become a matter of the
// store, which has them on disk first and sends them then, in this order.
type podsOfStore struct {
	corev1client.PodsGetter
	provider *provider
}

func (c podsOfStore) Pods(namespace string) corev1client.PodInterface {
	return podsOfNamespace{PodInterface: c.PodsGetter.Pods(namespace), provider: c.provider}
}

type podsOfNamespace struct {
	corev1client.PodInterface
	provider *provider
}

// UpdateStatus stores a status that the framework made up, as it does when a provider
// returns an error. It is made from what the server had, so it counts only if the store has
// none yet: else it could take back what the provider has stored.
func (c podsOfNamespace) UpdateStatus(ctx context.Context, pod *v1.Pod, _ metav1.UpdateOptions) (*v1.Pod, error) {
	_, err := c.provider.store.SetPodStatusIf(ctx, pod, pod.Status, 0)
	if errors.Is(err, manager.ErrVersionConflict) {
		err = nil
	}
	return pod, err
}

// Delete ends the pod; its object is deleted by the store, once its end is on the server.
// Only a pod that the provider never heard of is deleted right here.
func (c podsOfNamespace) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		if err := c.provider.end(ctx, *o.Preconditions.UID); !errdefs.IsNotFound(err) {
			return err
		}
	}
	return c.PodInterface.Delete(ctx, name, o)
}
