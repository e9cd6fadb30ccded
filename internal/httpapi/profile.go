// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"net/http/pprof"
	"strings"
)

// pathProfiles is where Go's tools look for profiles.
const pathProfiles = "/debug/pprof/"

// Privileged says whether a path is more than a look at pods: a snapshot takes as
// much disk as the journal, and profiles show the process itself. Who may only
// read may not read these.
func Privileged(path string) bool {
	return path == PathSnapshot || strings.HasPrefix(path, strings.TrimSuffix(pathProfiles, "/"))
}

// GET /debug/pprof/…
func getProfile(w http.ResponseWriter, r *http.Request) error {
	switch strings.TrimPrefix(r.URL.Path, pathProfiles) {
	case "cmdline":
		pprof.Cmdline(w, r)
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
	return nil
}
