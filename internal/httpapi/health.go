// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/manager"
)

// check is one thing that health is about.
type check struct {
	name string
	run  func(*manager.Manager) error
}

// The API server is none of them: being without it is what this program is for.
var (
	// checkJournal fails when only a restart helps.
	checkJournal = check{"journal", func(m *manager.Manager) error {
		select {
		case <-m.Failed():
			return errors.New("the journal cannot be written by this process any more; a restart is needed")
		default:
			return nil
		}
	}}
	// checkDisk fails while writes do.
	checkDisk = check{"disk", (*manager.Manager).Writable}
)

// getHealth answers GET /healthz, /livez and /readyz, with ?verbose check by check.
func (a *api) getHealth(checks ...check) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var text strings.Builder
		var failed []string
		for _, c := range checks {
			err := c.run(a.m)
			if err == nil {
				fmt.Fprintf(&text, "[+]%s ok\n", c.name)
				continue
			}
			fmt.Fprintf(&text, "[-]%s failed: %v\n", c.name, err)
			failed = append(failed, fmt.Sprintf("%s: %v", c.name, err))
		}
		verbose := r.URL.Query().Has("verbose")
		what := strings.TrimPrefix(r.URL.Path, "/")
		switch {
		case len(failed) == 0 && !verbose:
			writeBytes(w, http.StatusOK, contentText, []byte("ok"))
		case len(failed) == 0:
			writeBytes(w, http.StatusOK, contentText, []byte(text.String()+what+" check passed\n"))
		case verbose:
			writeBytes(w, http.StatusServiceUnavailable, contentText, []byte(text.String()+what+" check failed\n"))
		default:
			return statusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "%s check failed: %s", what, strings.Join(failed, "; "))
		}
		return nil
	}
}
