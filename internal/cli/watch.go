// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// errWatchEnded: the agent closed the watch, which it does when it stops.
var errWatchEnded = errors.New("the agent ended the watch; is it still running?")

// watch prints what there is and then each change until ctx ends, which is no
// error. When the agent says that the watch fell too far behind, it begins anew.
func (g *getter) watch(ctx context.Context) error {
	for {
		version, err := g.list(ctx)
		if err == nil {
			err = g.follow(ctx, version)
		}
		if ctx.Err() != nil {
			return nil
		}
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return err
		}
	}
}

func (g *getter) follow(ctx context.Context, version string) error {
	query := g.which.query()
	query.Set("watch", "1")
	query.Set("resourceVersion", version)
	if g.which.name != "" {
		query.Set("fieldSelector", "metadata.name="+g.which.name)
	}
	resp, err := g.client.Open(ctx, g.which.listPath(), query, g.printer.accept())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for dec := json.NewDecoder(resp.Body); ; {
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := dec.Decode(&event); errors.Is(err, io.EOF) {
			return errWatchEnded
		} else if err != nil {
			return fmt.Errorf("read watch: %w", err)
		}
		switch event.Type {
		case watch.Bookmark:
		case watch.Error:
			var status metav1.Status
			if err := json.Unmarshal(event.Object, &status); err != nil {
				return fmt.Errorf("read watch: %w", err)
			}
			return apierrors.FromObject(&status)
		default:
			if err := g.printer.printNext(event.Object); err != nil {
				return err
			}
		}
	}
}
