// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Handler serves the API without a listener, for use in another HTTP server.
// After Close it answers 503.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	c := &call{server: s, w: w, r: r, target: parseTarget(r)}
	if s.isDown() {
		panic(http.ErrAbortHandler)
	}
	var err error
	if c.body, err = readBody(r); err == nil {
		c.media, err = c.negotiate()
	}
	c.logged = s.requests.started(r, c.target, c.body)
	if s.isClosed() {
		err = apierrors.NewServiceUnavailable(ErrClosed.Error())
	}
	if err != nil {
		c.fail(err)
		return
	}
	fault, ok := s.faults.take(c.target, r.UserAgent())
	if ok && c.suffer(fault) {
		return
	}
	c.dispatch()
}

func (c *call) dispatch() {
	if c.target.verb == Discovery {
		c.discover()
		return
	}
	if c.target.unknown {
		c.fail(errNoSuchPath())
		return
	}
	if c.r.URL.Query().Has("dryRun") {
		c.fail(apierrors.NewBadRequest("dryRun is not supported by this server"))
		return
	}
	if err := c.handle(); err != nil {
		c.fail(err)
	}
}

// handle answers the request unless it returns an error.
func (c *call) handle() error {
	t := c.target
	switch {
	case t.verb == Watch:
		return c.watch()
	case t.verb == List:
		return c.list()
	case t.namespace == "":
		return errMethodNotAllowed()
	case t.verb == Post && t.name == "":
		return c.create()
	case t.verb == DeleteCollection:
		return c.deleteCollection()
	case t.name == "":
		return errMethodNotAllowed()
	case t.verb == Get:
		return c.get()
	case t.verb == Put:
		return c.put()
	case t.verb == Patch:
		return c.patch()
	case t.verb == Delete && t.subresource == "":
		return c.delete()
	default:
		return errMethodNotAllowed()
	}
}

func (c *call) get() error {
	pod, ok := c.server.store.get(c.target.key())
	if !ok {
		return errNotFound(c.target.name)
	}
	c.answer(http.StatusOK, pod)
	return nil
}

func (c *call) create() error {
	pod, err := decodePod(c.body, c.r.Header.Get("Content-Type"), c.strict())
	if err != nil {
		return err
	}
	if pod.Namespace == "" {
		pod.Namespace = c.target.namespace
	}
	if pod.Namespace != c.target.namespace {
		return apierrors.NewBadRequest("the namespace of the object does not match the namespace of the request")
	}
	if err := prepareCreate(pod); err != nil {
		return err
	}
	stored, err := c.server.store.create(pod)
	if err != nil {
		return err
	}
	c.answer(http.StatusCreated, stored)
	return nil
}

func (c *call) put() error {
	pod, err := decodePod(c.body, c.r.Header.Get("Content-Type"), c.strict())
	if err != nil {
		return err
	}
	if pod.Name == "" {
		return apierrors.NewBadRequest("the object has no name")
	}
	if pod.Namespace == "" {
		pod.Namespace = c.target.namespace
	}
	if err := c.checkName(pod); err != nil {
		return err
	}
	return c.write(func(old *corev1.Pod) (*corev1.Pod, error) {
		// In a PUT the UID is a precondition; in a PATCH it's a change of an
		// immutable field, which gives another error.
		if pod.UID != "" && pod.UID != old.UID {
			return nil, errOtherUID(podResource, pod.Name, pod.UID, old.UID)
		}
		return pod.DeepCopy(), nil
	})
}

// write stores what propose makes of the pod, under the rules for the pod
// itself or for its status.
func (c *call) write(propose change) error {
	isStatus := c.target.subresource == "status"
	stored, changed, err := c.server.store.update(c.target.key(), func(old *corev1.Pod) (*corev1.Pod, error) {
		next, err := propose(old)
		if err != nil {
			return nil, err
		}
		if isStatus {
			return next, c.server.prepareStatusUpdate(next, old)
		}
		return next, prepareUpdate(next, old)
	})
	if err != nil {
		return err
	}
	if changed && isStatus {
		c.server.store.recordStatus(stored, c.r.UserAgent(), c.logged.request.At)
	}
	c.answer(http.StatusOK, stored)
	return nil
}

func (c *call) checkName(pod *corev1.Pod) error {
	if pod.Name != c.target.name {
		return apierrors.NewBadRequest("the name of the object (" + pod.Name + ") does not match the name in the URL (" + c.target.name + ")")
	}
	if pod.Namespace != c.target.namespace {
		return apierrors.NewBadRequest("the namespace of the object does not match the namespace of the request")
	}
	return nil
}

func (c *call) strict() bool {
	return c.r.URL.Query().Get("fieldValidation") == metav1.FieldValidationStrict
}

func (c *call) negotiate() (runtime.SerializerInfo, error) {
	media, ok := negotiate(c.r.Header.Get("Accept"), c.target.verb == Watch)
	// Discovery is plain JSON for everybody.
	if !ok && c.target.verb != Discovery {
		return media, errNotAcceptable()
	}
	return media, nil
}
