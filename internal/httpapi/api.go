// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/statusstore/statusstore/manager"
)

// WriteTimeout is how long one write to a client may take without progress, by
// default. Then the client counts as stuck, and its connection is closed.
const WriteTimeout = 30 * time.Second

// Live shows this node's pods as the API server has them.
type Live interface {
	// HasSynced reports whether an absent pod means something.
	HasSynced() bool
	// Get returns a pod that is shared.
	Get(namespace, name string) (*v1.Pod, bool)
	// LastError says why the last LIST or WATCH failed, and when; empty if it
	// worked.
	LastError() (string, time.Time)
}

// Options set up a handler. Manager is required; the zero value of the others is
// the recommended setup.
type Options struct {
	Manager *manager.Manager
	// Metrics are served and fed. Nil: metrics of the handler's own. Two handlers
	// of one manager may share them.
	Metrics *Metrics
	// ReadOnly, if not empty, says why all writes are refused.
	ReadOnly string
	// Profiling serves /debug/pprof.
	Profiling bool
	// Syncing says that there is an API server to sync with.
	Syncing bool
	// Live shows the pods as that server has them. Nil: it is not asked.
	Live Live
	// Node, Mode and Software are shown in answers.
	Node, Mode, Software string

	// Stopping is closed when watches and other streams have to end. Nil: never.
	Stopping <-chan struct{}

	// WriteTimeout replaces the constant of that name.
	WriteTimeout time.Duration
	// ReadTimeout bounds the reading of a request's body. Default 30 s.
	ReadTimeout time.Duration
	// CommitTimeout bounds the wait for the disk. Default 30 s.
	CommitTimeout time.Duration
	// BookmarkInterval is the time between the bookmarks of a watch that nothing
	// else was sent to. Default 1 min.
	BookmarkInterval time.Duration
	// MaxBodyBytes bounds the body of a request. Default 3 MiB.
	MaxBodyBytes int64

	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
}

const (
	defaultReadTimeout      = 30 * time.Second
	defaultCommitTimeout    = 30 * time.Second
	defaultBookmarkInterval = time.Minute
	defaultMaxBodyBytes     = 3 << 20 // as Kubernetes' API server
)

func (o Options) withDefaults() Options {
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&o.WriteTimeout, WriteTimeout},
		{&o.ReadTimeout, defaultReadTimeout},
		{&o.CommitTimeout, defaultCommitTimeout},
		{&o.BookmarkInterval, defaultBookmarkInterval},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	if o.MaxBodyBytes <= 0 {
		o.MaxBodyBytes = defaultMaxBodyBytes
	}
	return o
}

// api holds what the handlers share. Only recent and turns change.
type api struct {
	Options
	m        *manager.Manager
	started  time.Time
	snapshot chan struct{} // holds a value while a snapshot is being served
	recent   *recentEvents
	turns    *turns // of watches
}

// handler answers a request, or returns an error before it has written anything.
type handler func(w http.ResponseWriter, r *http.Request) error

// methods are the handlers of one path.
type methods map[string]handler

// New returns the handler of the whole interface.
func New(o Options) http.Handler { return newAPI(o).handler() }

func (a *api) handler() http.Handler {
	a.Metrics.attach(a)
	mux := http.NewServeMux()
	for pattern, m := range a.routes() {
		mux.Handle(pattern, a.dispatch(pattern, m))
	}
	if a.Profiling {
		mux.Handle(pathProfiles, a.dispatch(pathProfiles, methods{http.MethodGet: getProfile}))
	}
	mux.Handle("/", a.dispatch("other", nil))
	return mux
}

func newAPI(o Options) *api {
	o = o.withDefaults()
	return &api{
		Options: o, m: o.Manager, started: time.Now(), snapshot: make(chan struct{}, maxSnapshots),
		recent: new(recentEvents), turns: newTurns(),
	}
}

func (a *api) routes() map[string]methods {
	get := func(h handler) methods { return methods{http.MethodGet: h} }
	post := func(h handler) methods { return methods{http.MethodPost: h} }
	return map[string]methods{
		"/api/v1/pods":                        get(a.listPods),
		"/api/v1/namespaces/{ns}":             get(a.getNamespace),
		"/api/v1/namespaces/{ns}/pods":        get(a.listPods),
		"/api/v1/namespaces/{ns}/pods/{name}": get(a.getPod),
		"/api/v1/namespaces/{ns}/pods/{name}/status": {
			http.MethodGet: a.getPod, http.MethodPut: a.putStatus, http.MethodPatch: a.patchStatus,
		},

		PathStatus:                    get(a.getStatus),
		PathPods:                      get(a.getRecords),
		PathPods + "/{uid}":           get(a.getRecord),
		PathPods + "/{uid}/history":   get(a.getHistory),
		PathPods + "/{uid}/readiness": post(a.postReadiness),
		PathPods + "/{uid}/startup":   post(a.postStartup),
		PathPods + "/{uid}/terminate": post(a.postTerminate),
		PathPods + "/{uid}/finished":  post(a.postFinished),
		PathRetain:                    post(a.postRetain),
		PathEvents:                    get(a.getEvents),
		PathSnapshot:                  get(a.getSnapshot),
		"/healthz":                    get(a.getHealth(checkJournal, checkDisk)),
		"/livez":                      get(a.getHealth(checkJournal)),
		"/readyz":                     get(a.getHealth(checkJournal, checkDisk)),
		"/metrics":                    get(a.getMetrics),
		"/version":                    get(a.getVersion),
		"/api":                        get(getAPIVersions),
		"/apis":                       get(getAPIGroups),
		"/api/v1":                     get(getAPIResources),
	}
}

// dispatch chooses by method, so that a wrong one is answered in the shape of all
// errors. A nil m is a path that does not exist.
func (a *api) dispatch(pattern string, m methods) http.Handler {
	return a.around(pattern, func(w http.ResponseWriter, r *http.Request) error {
		if m == nil {
			return statusError(http.StatusNotFound, metav1.StatusReasonNotFound, "there is nothing at %s", r.URL.Path)
		}
		method := r.Method
		if method == http.MethodHead { // net/http drops the body
			method = http.MethodGet
		}
		h, ok := m[method]
		if !ok {
			allowed := make([]string, 0, len(m)+1)
			for name := range m {
				allowed = append(allowed, name)
			}
			slices.Sort(allowed)
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			return statusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "%s is not allowed here; use %s", r.Method, strings.Join(allowed, " or "))
		}
		if a.ReadOnly != "" && method != http.MethodGet {
			return statusError(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "%s is not allowed: %s", r.Method, a.ReadOnly)
		}
		return h(w, r)
	})
}
