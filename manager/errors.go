// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// Errors of calls about one pod.
var (
	// ErrUnknownPod: the pod source does not know the UID (SEMANTICS 16).
	ErrUnknownPod = errors.New("unknown pod")
	// ErrNoStatus: the pod is known, but no status of it was stored yet.
	ErrNoStatus = errors.New("pod has no status yet")
	// ErrUnknownContainer: no container of the stored status has the ID.
	ErrUnknownContainer = errors.New("unknown container")
	// ErrInvalid: the input misses something or cannot be stored. See InvalidError.
	ErrInvalid = errors.New("invalid")
	// ErrUIDConflict: the UID is stored with another namespace or name. See
	// UIDConflictError.
	ErrUIDConflict = errors.New("pod UID is in use by another pod")
	// ErrVersionConflict: the stored version is not the expected one. See
	// VersionConflictError.
	ErrVersionConflict = errors.New("version conflict")
)

// Errors of the manager as a whole. An illegal change of a status is a
// *podstatus.TransitionError; what the disk refuses is journal.ErrDegraded or
// journal.ErrTooLarge.
var (
	// ErrClosed: the manager was closed. It is journal.ErrClosed.
	ErrClosed = journal.ErrClosed
	// ErrNoClient: there is nothing to sync with.
	ErrNoClient = errors.New("no Kubernetes client is configured")
	// ErrAlreadyRun: Run may be called once.
	ErrAlreadyRun = errors.New("manager was already run")
)

// InvalidError names the field that was refused. It is ErrInvalid.
type InvalidError struct {
	Field  string // as in JSON, such as "metadata.uid"
	Detail string // what is wrong with it
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("%v: %s: %s", ErrInvalid, e.Field, e.Detail)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// UIDConflictError says whose UID it is. It is ErrUIDConflict.
type UIDConflictError struct {
	UID    types.UID
	Stored types.NamespacedName // the pod that has the UID
	Given  types.NamespacedName // the pod that was passed in
}

func (e *UIDConflictError) Error() string {
	return fmt.Sprintf("%v: %s is stored as %s, not %s", ErrUIDConflict, e.UID, e.Stored, e.Given)
}

// Is makes errors.Is(err, ErrUIDConflict) true.
func (e *UIDConflictError) Is(target error) bool { return target == ErrUIDConflict }

// VersionConflictError says which version is stored. It is ErrVersionConflict.
type VersionConflictError struct {
	UID      types.UID
	Expected journal.Version
	Stored   journal.Version // 0: no status is stored
}

func (e *VersionConflictError) Error() string {
	return fmt.Sprintf("%v: pod %s has version %d, not %d", ErrVersionConflict, e.UID, e.Stored, e.Expected)
}

// Is makes errors.Is(err, ErrVersionConflict) true.
func (e *VersionConflictError) Is(target error) bool { return target == ErrVersionConflict }
