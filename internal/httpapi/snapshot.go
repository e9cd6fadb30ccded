// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/journal"
)

// maxSnapshots bounds the copies that exist at a time: each takes as much space
// as the journal.
const maxSnapshots = 1

// GET /statusstore/v1/snapshot
func (a *api) getSnapshot(w http.ResponseWriter, r *http.Request) error {
	select {
	case a.snapshot <- struct{}{}:
		defer func() { <-a.snapshot }()
	default:
		w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
		return statusError(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "another snapshot is being read; try again in a few seconds")
	}
	f, err := a.m.Journal().SnapshotFile(r.Context())
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+journal.FileName+`"`)
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	w.WriteHeader(http.StatusOK)
	_, err = io.Copy(w, f)
	return err
}
