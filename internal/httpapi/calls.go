// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/statusstore/statusstore/manager"
	"github.com/statusstore/statusstore/projection"
)

// POST /statusstore/v1/pods/{uid}/readiness
func (a *api) postReadiness(w http.ResponseWriter, r *http.Request) error {
	var body ReadinessRequest
	if err := a.readJSON(w, r, &body); err != nil {
		return err
	}
	if body.Ready == nil {
		return badRequest("ready is required")
	}
	return a.containerCall(w, r, body.ContainerID, func(ctx context.Context, uid types.UID) (manager.Outcome, error) {
		return a.m.SetContainerReadiness(ctx, uid, body.ContainerID, *body.Ready)
	})
}

// POST /statusstore/v1/pods/{uid}/startup
func (a *api) postStartup(w http.ResponseWriter, r *http.Request) error {
	var body StartupRequest
	if err := a.readJSON(w, r, &body); err != nil {
		return err
	}
	if body.Started == nil {
		return badRequest("started is required")
	}
	return a.containerCall(w, r, body.ContainerID, func(ctx context.Context, uid types.UID) (manager.Outcome, error) {
		return a.m.SetContainerStartup(ctx, uid, body.ContainerID, *body.Started)
	})
}

func (a *api) containerCall(w http.ResponseWriter, r *http.Request, containerID string, call func(context.Context, types.UID) (manager.Outcome, error)) error {
	if containerID == "" {
		return badRequest("containerID is required")
	}
	// The manager does not translate mirror UIDs here (SEMANTICS 6); this
	// interface takes either.
	e, err := a.entryByUID(r)
	if err != nil {
		return err
	}
	var outcome manager.Outcome
	err = a.commit(r, func(ctx context.Context) (bool, error) {
		var err error
		outcome, err = call(ctx, e.UID)
		return outcome == manager.OutcomeApplied, err
	})
	if err != nil {
		return err
	}
	if after, ok := a.m.Entry(e.UID); ok {
		e = after
	}
	writeResult(w, e, outcome == manager.OutcomeApplied)
	return nil
}

// POST /statusstore/v1/pods/{uid}/terminate
func (a *api) postTerminate(w http.ResponseWriter, r *http.Request) error {
	if err := a.readJSON(w, r, &struct{}{}); err != nil {
		return err
	}
	uid := types.UID(r.PathValue("uid"))
	pod, ok := a.m.Pod(uid)
	if !ok {
		// Stored, but the object was never shown.
		e, err := a.entryByUID(r)
		if err != nil {
			return err
		}
		pod = &v1.Pod{Status: *e.Status.DeepCopy()}
		pod.Namespace, pod.Name, pod.UID = e.Namespace, e.Name, e.UID
	}
	var change manager.Change
	err := a.commit(r, func(ctx context.Context) (bool, error) {
		var err error
		change, err = a.m.TerminatePod(ctx, pod)
		return change.Changed, err
	})
	if err != nil {
		return err
	}
	writeResult(w, a.stored(change, pod), change.Changed)
	return nil
}

// POST /statusstore/v1/pods/{uid}/finished
func (a *api) postFinished(w http.ResponseWriter, r *http.Request) error {
	if err := a.readJSON(w, r, &struct{}{}); err != nil {
		return err
	}
	e, err := a.entryByUID(r)
	if err != nil {
		return err
	}
	var change manager.Change
	err = a.commit(r, func(ctx context.Context) (bool, error) {
		var err error
		change, err = a.m.FinishPod(ctx, e.UID)
		return change.Changed, err
	})
	if err != nil {
		return err
	}
	pod := &v1.Pod{}
	pod.Namespace, pod.Name = e.Namespace, e.Name
	writeResult(w, a.stored(change, pod), change.Changed)
	return nil
}

func writeResult(w http.ResponseWriter, e *projection.Entry, changed bool) {
	setPodHeaders(w, e)
	result := CallResult{
		UID: e.UID, Namespace: e.Namespace, Name: e.Name, Outcome: OutcomeUnchanged,
		Version: e.Version, AckedVersion: e.Acked, Sequence: e.Sequence,
	}
	if changed {
		result.Outcome = OutcomeApplied
	}
	writeJSON(w, http.StatusOK, result)
}

// POST /statusstore/v1/retain
func (a *api) postRetain(w http.ResponseWriter, r *http.Request) error {
	var body RetainRequest
	if err := a.readJSON(w, r, &body); err != nil {
		return err
	}
	if body.UIDs == nil {
		return badRequest("uids is required; an empty list removes all pods")
	}
	keep := sets.New(*body.UIDs...)
	if keep.Has("") {
		return badRequest("uids has an empty one")
	}
	for _, uid := range *body.UIDs {
		if e, ok := a.m.Entry(uid); ok {
			keep.Insert(e.UID) // a mirror's UID keeps its static pod
		}
	}
	var removed []types.UID
	err := a.commit(r, func(ctx context.Context) (bool, error) {
		var err error
		removed, err = a.m.RemoveOrphanedStatuses(ctx, keep)
		return len(removed) > 0, err
	})
	if err != nil {
		return err
	}
	if removed == nil {
		removed = []types.UID{}
	}
	writeJSON(w, http.StatusOK, RetainResult{Removed: removed})
	return nil
}
