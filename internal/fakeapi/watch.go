// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// A watch without timeoutSeconds ends after this time up to twice of it.
const minWatchTime = 30 * time.Minute

// watcher is one WATCH request. It has no goroutine and no buffer of its own:
// it reads the event window at its client's pace and gets 410 when it falls
// out of it.
type watcher struct {
	call      *call
	sel       selection
	seen      uint64 // version up to which the client knows all
	bookmarks bool
	frames    io.Writer
	sent      bytes.Buffer
}

func (c *call) watch() error {
	options, sel, err := c.listOptions()
	if err != nil {
		return err
	}
	if c.target.name != "" {
		if sel, err = newSelection(c.target.namespace, options.LabelSelector, "metadata.name="+c.target.name); err != nil {
			return err
		}
	}
	version, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return err
	}
	w := &watcher{call: c, sel: sel, bookmarks: options.AllowWatchBookmarks}
	w.frames = c.media.StreamSerializer.Framer.NewFrameWriter(&w.sent)
	start, err := c.server.store.watchStart(version, options, sel)
	w.begin()
	if err != nil {
		// As in a real server this is found out when the stream is open.
		_ = w.sendError(err) // fails only if the client has gone
		return nil
	}
	w.seen = start.version
	w.run(start, watchTime(options))
	return nil
}

func watchTime(options metav1.ListOptions) time.Duration {
	if seconds := options.TimeoutSeconds; seconds != nil && *seconds > 0 {
		return time.Duration(*seconds) * time.Second
	}
	return minWatchTime + rand.N(minWatchTime)
}

// watchStart is the state that a watch begins with.
type watchStart struct {
	version  uint64
	initial  []*corev1.Pod
	announce bool // tell by a bookmark that the initial events are over
}

func (s *store) watchStart(version uint64, options metav1.ListOptions, sel selection) (watchStart, error) {
	withInitial := version == 0
	if send := options.SendInitialEvents; send != nil {
		withInitial = *send
	}
	current := s.current()
	switch {
	case withInitial && version > current:
		return watchStart{}, errTooLargeVersion(version, current)
	case withInitial:
		pods, current := s.state(sel)
		announce := options.SendInitialEvents != nil && options.AllowWatchBookmarks
		return watchStart{version: current, initial: pods, announce: announce}, nil
	case version == 0:
		return watchStart{version: current}, nil
	default:
		return watchStart{version: version}, nil
	}
}

func (w *watcher) begin() {
	c := w.call
	mediaType := c.media.MediaType
	if !c.media.EncodesAsText {
		mediaType += ";stream=watch"
	}
	c.w.Header().Set("Content-Type", mediaType)
	c.w.Header().Set("Cache-Control", "no-cache, private")
	c.server.requests.answered(c.logged, http.StatusOK)
	c.w.WriteHeader(http.StatusOK)
}

func (w *watcher) run(start watchStart, limit time.Duration) {
	ctx, cancel := context.WithTimeout(w.call.r.Context(), limit)
	defer cancel()
	cut := w.call.server.cutSignal()
	ticker := time.NewTicker(w.call.server.options.BookmarkInterval)
	defer ticker.Stop()

	err := w.sendInitial(start)
	for err == nil {
		var more <-chan struct{}
		if more, err = w.catchUp(); err != nil {
			return
		}
		select {
		case <-more:
		case <-ticker.C:
			if w.bookmarks {
				err = w.sendBookmark(nil)
			}
		case <-ctx.Done():
			return
		case <-w.call.server.done:
			return
		case <-cut:
			panic(http.ErrAbortHandler)
		}
	}
}

func (w *watcher) sendInitial(start watchStart) error {
	for _, pod := range start.initial {
		if err := w.encode(watch.Added, pod); err != nil {
			return err
		}
	}
	if start.announce {
		return w.sendBookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	return w.flush()
}

// errWatchOver ends a watch that has told its client why.
var errWatchOver = errors.New("watch is over")

// catchUp sends all events there are and returns a channel that is closed when
// there are more.
func (w *watcher) catchUp() (<-chan struct{}, error) {
	for {
		next, ok := w.call.server.store.since(w.seen)
		if !ok {
			return nil, w.sendError(errExpired(fmt.Sprintf("too old resource version: %d", w.seen)))
		}
		for _, event := range next.events {
			if kind, pod := w.sel.view(event); pod != nil {
				if err := w.encode(kind, pod); err != nil {
					return nil, err
				}
			}
			w.seen = event.version
		}
		if err := w.flush(); err != nil {
			return nil, err
		}
		if w.seen >= next.current || len(next.events) == 0 {
			return next.changed, nil
		}
	}
}

// view is an event as somebody sees it who looks at selected pods only: one
// that enters the selection is added, one that leaves it is deleted.
func (sel selection) view(e event) (watch.EventType, *corev1.Pod) {
	was := sel.matches(e.before)
	is := e.kind != watch.Deleted && sel.matches(e.after)
	switch {
	case is && was:
		return watch.Modified, e.after
	case is:
		return watch.Added, e.after
	case was && e.kind == watch.Deleted:
		return watch.Deleted, e.after
	case was:
		// The client knows the old state; the version says when it left.
		left := *e.before
		left.ResourceVersion = e.after.ResourceVersion
		return watch.Deleted, &left
	default:
		return "", nil
	}
}

func (w *watcher) sendBookmark(annotations map[string]string) error {
	bookmark := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.FormatUint(w.seen, 10),
			Annotations:     annotations,
		},
	}
	if err := w.encode(watch.Bookmark, bookmark); err != nil {
		return err
	}
	return w.flush()
}

// sendError sends the last event of a watch.
func (w *watcher) sendError(reason error) error {
	if err := w.encode(watch.Error, toStatus(reason)); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	return errWatchOver
}

// encode adds one event to what flush sends.
func (w *watcher) encode(kind watch.EventType, obj runtime.Object) error {
	var inner bytes.Buffer
	if err := w.call.media.Serializer.Encode(obj, &inner); err != nil {
		return fmt.Errorf("encode watched object: %w", err)
	}
	outer := &metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: inner.Bytes()}}
	if err := w.call.media.StreamSerializer.Encode(outer, w.frames); err != nil {
		return fmt.Errorf("encode watch event: %w", err)
	}
	if w.sent.Len() < 1<<20 {
		return nil
	}
	return w.flush()
}

// flush sends what was encoded. The headers go out even if that is nothing.
func (w *watcher) flush() error {
	if w.call.cut && w.sent.Len() > 0 {
		w.call.cutAfter(w.sent.Bytes())
	}
	if _, err := w.call.w.Write(w.sent.Bytes()); err != nil {
		return err
	}
	w.sent.Reset()
	return http.NewResponseController(w.call.w).Flush()
}
