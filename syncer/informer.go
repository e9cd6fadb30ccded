// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	"github.com/statusstore/statusstore/internal/logkey"
)

// LiveOptions tune LivePods. The zero value is the recommended setup.
type LiveOptions struct {
	// Logger gets failures of LIST and WATCH. Nil discards them.
	Logger *slog.Logger
	// RequestTimeout bounds each page of a LIST, and the wait for a WATCH to
	// begin. Default 30 s.
	RequestTimeout time.Duration
	// RetryMax bounds the wait between attempts. Default 5 s: one node's LIST is
	// cheap, and until it succeeds nothing is sent.
	RetryMax time.Duration
}

func (o LiveOptions) withDefaults() LiveOptions {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = 30 * time.Second
	}
	if o.RetryMax <= 0 {
		o.RetryMax = 5 * time.Second
	}
	return o
}

// LivePods are the pods of one node as the API server shows them, kept up to
// date by one LIST and one WATCH. Pods that it returns are shared: don't modify
// them. They lack managed fields.
type LivePods struct {
	client  kubernetes.Interface
	node    string
	options LiveOptions
	store   cache.Indexer
	report  report

	started   atomic.Bool
	running   atomic.Bool
	begun     atomic.Int64 // LISTs, counting from 1
	complete  atomic.Int64 // the number of the newest LIST that is complete
	watched   atomic.Bool  // there was a WATCH since the last LIST
	lost      atomic.Bool  // a WATCH could not begin since the last LIST
	synced    chan struct{}
	syncOnce  sync.Once
	listing   sync.WaitGroup // LISTs of the reflector, which it doesn't wait for
	mu        sync.Mutex     // guards the fields below, up to replacing
	ended     bool           // Run takes no more LISTs
	handlers  []func(old, new *v1.Pod)
	replacing sync.Mutex // serialises Refresh

	errMu     sync.Mutex // guards the fields below
	lastError string     // of a LIST or WATCH; empty after one that worked
	lastTime  time.Time
}

const (
	byUID = "uid"
	// retryMin is the first wait after a LIST or WATCH that ended.
	retryMin = 200 * time.Millisecond
	// retryAfterMax caps what the server may ask for.
	retryAfterMax = time.Minute
)

// LastError returns why the last LIST or WATCH failed, and when; empty if it worked
// or there was none.
func (l *LivePods) LastError() (string, time.Time) {
	l.errMu.Lock()
	defer l.errMu.Unlock()
	return l.lastError, l.lastTime
}

// noteError remembers the outcome of a LIST or WATCH.
func (l *LivePods) noteError(what string, err error) {
	l.errMu.Lock()
	defer l.errMu.Unlock()
	l.lastError, l.lastTime = "", time.Time{}
	if err != nil {
		l.lastError, l.lastTime = what+": "+shorten(err.Error()), time.Now()
	}
}

// NewLivePods returns the pods of a node; all pods if node is empty. Nothing is
// requested before Run or Refresh.
func NewLivePods(client kubernetes.Interface, node string, o LiveOptions) *LivePods {
	o = o.withDefaults()
	return &LivePods{
		client: client, node: node, options: o,
		store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
			byUID: func(obj any) ([]string, error) { return []string{string(obj.(*v1.Pod).UID)}, nil },
		}),
		report: report{logger: o.Logger.With(logkey.Component, "live")},
		synced: make(chan struct{}),
	}
}

// OnChange registers a function that is told of every change after it was made:
// old is nil for a new pod, new is nil for one that is gone. A pod that was
// recreated while nobody looked comes as a change from the old to the new one.
// Call it before Run. Functions are called one at a time, in the order of the
// changes and of registration, and hold up the watch.
func (l *LivePods) OnChange(f func(old, new *v1.Pod)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handlers = append(l.handlers, f)
}

// HasSynced reports whether a LIST was complete once. Before, an absent pod
// means nothing.
func (l *LivePods) HasSynced() bool {
	select {
	case <-l.synced:
		return true
	default:
		return false
	}
}

// Synced is closed when HasSynced turns true.
func (l *LivePods) Synced() <-chan struct{} { return l.synced }

// Get returns the pod with the name.
func (l *LivePods) Get(namespace, name string) (*v1.Pod, bool) {
	obj, ok, err := l.store.GetByKey(namespace + "/" + name)
	if err != nil || !ok {
		return nil, false
	}
	return obj.(*v1.Pod), true
}

// ByUID returns the pod by the UID of its object: for a static pod its mirror.
func (l *LivePods) ByUID(uid types.UID) (*v1.Pod, bool) {
	objs, err := l.store.ByIndex(byUID, string(uid))
	if err != nil || len(objs) == 0 {
		return nil, false
	}
	return objs[0].(*v1.Pod), true
}

// List returns all pods, in no order.
func (l *LivePods) List() []*v1.Pod {
	objs := l.store.List()
	pods := make([]*v1.Pod, len(objs))
	for i, obj := range objs {
		pods[i] = obj.(*v1.Pod)
	}
	return pods
}

// Run lists and watches until the context ends, and returns nil then. It may be
// called once; a failing API server is no error but waited for.
func (l *LivePods) Run(ctx context.Context) error {
	if !l.started.CompareAndSwap(false, true) {
		return fmt.Errorf("live pods: %w", ErrRunning)
	}
	l.running.Store(true)
	defer l.running.Store(false)

	// The zero klog.Logger is silent: failures are reported by list and watch.
	quiet := klog.Logger{}
	ctx = klog.NewContext(ctx, quiet)
	retry := backoff{retryMin, l.options.RetryMax}
	reflector := cache.NewReflectorWithOptions(listWatch{l}, &v1.Pod{}, liveStore{l}, cache.ReflectorOptions{
		Name:    "live pods",
		Logger:  &quiet,
		Backoff: &wait.Backoff{Duration: retry.base, Factor: 2, Steps: 10, Cap: retry.max, Jitter: 0.2},
	})
	// Not Reflector.Run: it hands errors to process-wide handlers, which log and
	// sleep as they like.
	for attempts := 1; ctx.Err() == nil; attempts++ {
		start := time.Now()
		err := reflector.ListAndWatchWithContext(ctx) // list or watch has reported it
		if time.Since(start) > 2*l.options.RetryMax {
			attempts = 1
		}
		wait := retry.after(attempts)
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = max(wait, min(time.Duration(seconds)*time.Second, retryAfterMax))
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.listing.Wait()
	return nil
}

// Refresh does one LIST, for use without Run.
func (l *LivePods) Refresh(ctx context.Context) error {
	if l.running.Load() {
		return fmt.Errorf("refresh live pods: %w", ErrRunning)
	}
	l.replacing.Lock()
	defer l.replacing.Unlock()
	l.begun.Add(1)
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return l.list(ctx, o) })
	var items []any
	err := p.EachListItemWithAlloc(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		items = append(items, obj)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list pods of node %q: %w", l.node, err)
	}
	return liveStore{l}.Replace(items, "")
}

// changed tells the handlers.
func (l *LivePods) changed(old, new *v1.Pod) {
	l.mu.Lock()
	handlers := l.handlers
	l.mu.Unlock()
	for _, f := range handlers {
		f(old, new)
	}
}
