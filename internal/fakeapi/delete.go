// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
)

func (c *call) delete() error {
	options, err := c.deleteOptions()
	if err != nil {
		return err
	}
	pod, err := c.server.store.delete(c.target.key(), options, time.Now())
	if err != nil {
		return err
	}
	c.answer(http.StatusOK, pod)
	return nil
}

func (c *call) deleteCollection() error {
	options, err := c.deleteOptions()
	if err != nil {
		return err
	}
	_, sel, err := c.listOptions()
	if err != nil {
		return err
	}
	pods, version := c.server.store.state(sel)
	for _, pod := range pods {
		if _, err := c.server.store.delete(keyOf(pod), options, time.Now()); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	c.answer(http.StatusOK, newList(pods, version))
	return nil
}

// deleteOptions come in the body or, without one, in the query.
func (c *call) deleteOptions() (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	var err error
	if len(c.body) > 0 {
		if options, err = decodeDeleteOptions(c.body, c.r.Header.Get("Content-Type")); err != nil {
			return nil, err
		}
	} else {
		query := c.r.URL.Query()
		if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&query, options, nil); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if len(options.DryRun) > 0 {
		return nil, apierrors.NewBadRequest("dryRun is not supported by this server")
	}
	if errs := metav1validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return nil, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", errs)
	}
	return options, nil
}

// delete marks a pod as being deleted or removes it. It returns the pod after
// the last change.
func (s *store) delete(k key, options *metav1.DeleteOptions, now time.Time) (*corev1.Pod, error) {
	for {
		old, ok := s.get(k)
		if !ok {
			return nil, errNotFound(k.name)
		}
		if err := checkPreconditions(options.Preconditions, old); err != nil {
			return nil, err
		}
		marked, vanishes := markDeleted(old, options.GracePeriodSeconds, now)
		if !vanishes && marked == old {
			return old, nil // already being deleted, and not slower than asked for
		}
		if result, ok := s.applyDelete(k, old, marked, vanishes); ok {
			return result, nil
		}
	}
}

func (s *store) applyDelete(k key, old, marked *corev1.Pod, vanishes bool) (*corev1.Pod, bool) {
	if marked != old {
		stored, ok := s.swap(k, old, marked)
		if !ok || !vanishes {
			return stored, ok
		}
		old = stored
	}
	return s.remove(k, old)
}

func checkPreconditions(preconditions *metav1.Preconditions, pod *corev1.Pod) error {
	if preconditions == nil {
		return nil
	}
	// A real server names the kind here, not the resource.
	resource := corev1.Resource("Pod")
	if uid := preconditions.UID; uid != nil && *uid != pod.UID {
		return errOtherUID(resource, pod.Name, *uid, pod.UID)
	}
	if version := preconditions.ResourceVersion; version != nil && *version != pod.ResourceVersion {
		return apierrors.NewConflict(resource, pod.Name,
			fmt.Errorf("precondition failed: the resourceVersion in the request is %s, that of the object is %s", *version, pod.ResourceVersion))
	}
	return nil
}

// markDeleted returns old with the marks of a deletion that was asked for with
// this grace period (nil: that of the pod), or old itself if nothing changes,
// and whether the pod goes away now.
func markDeleted(old *corev1.Pod, asked *int64, now time.Time) (marked *corev1.Pod, vanishes bool) {
	if asked != nil && *asked < 0 {
		asked = new(int64(1))
	}
	if old.DeletionTimestamp != nil {
		return shortenGrace(old, asked, now)
	}
	grace := int64(0)
	switch {
	case old.Spec.NodeName == "" || isTerminal(old):
		// Nobody has to stop anything.
	case asked != nil:
		grace = *asked
	case old.Spec.TerminationGracePeriodSeconds != nil:
		grace = *old.Spec.TerminationGracePeriodSeconds
	}
	marked = old.DeepCopy()
	marked.Generation++
	setDeletion(marked, now.Add(time.Duration(grace)*time.Second), grace)
	return marked, grace == 0 && len(marked.Finalizers) == 0
}

// shortenGrace handles a second deletion: it can only make the first one faster.
func shortenGrace(old *corev1.Pod, asked *int64, now time.Time) (marked *corev1.Pod, vanishes bool) {
	current := old.DeletionGracePeriodSeconds
	if current == nil || *current == 0 {
		return old, len(old.Finalizers) == 0
	}
	if asked == nil || *asked >= *current {
		return old, false
	}
	grace := *asked
	deadline := old.DeletionTimestamp.Add(time.Duration(grace-*current) * time.Second)
	if deadline.Before(now) {
		deadline = now
		grace = min(grace, 1)
	}
	marked = old.DeepCopy()
	setDeletion(marked, deadline, grace)
	return marked, grace == 0 && len(marked.Finalizers) == 0
}

func setDeletion(pod *corev1.Pod, deadline time.Time, grace int64) {
	pod.DeletionTimestamp = new(metav1.NewTime(deadline).Rfc3339Copy())
	pod.DeletionGracePeriodSeconds = &grace
}

func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
