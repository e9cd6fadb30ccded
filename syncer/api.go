// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// requests sends single requests about one pod, each with its timeout and
// without client-go's own retries: those would sleep in a worker, and a
// Retry-After of an hour would become a timeout.
type requests struct {
	client  kubernetes.Interface
	timeout time.Duration
}

func (r requests) patch(ctx context.Context, live *v1.Pod, patch []byte) (*v1.Pod, error) {
	pod := new(v1.Pod)
	err := r.limited(ctx, func(ctx context.Context) error {
		c, ok := r.rest()
		if !ok {
			var err error
			pod, err = r.client.CoreV1().Pods(live.Namespace).Patch(ctx, live.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
			return err
		}
		return into(ctx, about(c.Patch(types.StrategicMergePatchType), live.Namespace, live.Name).SubResource("status").Body(patch), pod)
	})
	if err != nil {
		return nil, fmt.Errorf("patch status: %w", err)
	}
	return strip(pod), nil
}

func (r requests) get(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	pod := new(v1.Pod)
	err := r.limited(ctx, func(ctx context.Context) error {
		c, ok := r.rest()
		if !ok {
			var err error
			pod, err = r.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
			return err
		}
		return into(ctx, about(c.Get(), namespace, name), pod)
	})
	if err != nil {
		return nil, fmt.Errorf("get pod: %w", err)
	}
	return strip(pod), nil
}

// delete removes the object at once, if it is still this one (SEMANTICS 97).
func (r requests) delete(ctx context.Context, live *v1.Pod) error {
	options := metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)),
		Preconditions:      &metav1.Preconditions{UID: &live.UID},
	}
	err := r.limited(ctx, func(ctx context.Context) error {
		c, ok := r.rest()
		if !ok {
			return r.client.CoreV1().Pods(live.Namespace).Delete(ctx, live.Name, options)
		}
		return into(ctx, about(c.Delete(), live.Namespace, live.Name).Body(&options), nil)
	})
	if err != nil {
		return fmt.Errorf("delete pod: %w", err)
	}
	return nil
}

// rest returns the client below the typed one. client-go's fake clientset has
// none; then the typed one has to do.
func (r requests) rest() (rest.Interface, bool) {
	c := r.client.CoreV1().RESTClient()
	if typed, ok := c.(*rest.RESTClient); ok && typed == nil {
		return nil, false
	}
	return c, c != nil
}

func (r requests) limited(ctx context.Context, send func(context.Context) error) error {
	limited, cancel := context.WithTimeoutCause(ctx, r.timeout, errRequestTimeout)
	defer cancel()
	// client-go would log what we report ourselves; the zero Logger is silent.
	err := send(klog.NewContext(limited, klog.Logger{}))
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(limited), errRequestTimeout) {
		return errors.Join(errRequestTimeout, err)
	}
	return err
}

func about(r *rest.Request, namespace, name string) *rest.Request {
	return plain(r.Namespace(namespace).Resource("pods").Name(name))
}

// plain asks for protobuf, unless the client was set up otherwise, and for no retries.
func plain(r *rest.Request) *rest.Request {
	return r.UseProtobufAsDefaultIfPreferred(true).MaxRetries(0)
}

// into sends the request and decodes the answer into obj, unless that is nil.
func into(ctx context.Context, r *rest.Request, obj runtime.Object) error {
	result := r.Do(ctx)
	err := result.Error()
	if err == nil {
		if obj == nil {
			return nil
		}
		return result.Into(obj)
	}
	// The Status in the body is the better error, but the header Retry-After is
	// only in the one that client-go makes of the response itself.
	better, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	_, plain := result.Raw()
	if seconds, ok := apierrors.SuggestsClientDelay(plain); ok && retryAfterSeconds(better) == 0 {
		better = &apierrors.StatusError{ErrStatus: *better.ErrStatus.DeepCopy()}
		if better.ErrStatus.Details == nil {
			better.ErrStatus.Details = &metav1.StatusDetails{}
		}
		better.ErrStatus.Details.RetryAfterSeconds = int32(seconds)
	}
	if better.ErrStatus.Code == 0 {
		better.ErrStatus.Code = http.StatusInternalServerError
	}
	return better
}

func retryAfterSeconds(err *apierrors.StatusError) int32 {
	if err.ErrStatus.Details == nil {
		return 0
	}
	return err.ErrStatus.Details.RetryAfterSeconds
}
