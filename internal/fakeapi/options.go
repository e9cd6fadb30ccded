// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"log/slog"
	"time"
)

// Options sets up a Server. The zero value is the recommended setup.
type Options struct {
	// Address to listen on, "127.0.0.1:0" if empty. Listen only.
	Address string

	// EventWindow is how many events a watch may be behind before it gets
	// 410 Expired. Default 16384.
	EventWindow int

	// BookmarkInterval is how often a watch that allows bookmarks gets one.
	// Default one minute.
	BookmarkInterval time.Duration

	// RequestLog is how many requests are remembered; older ones are dropped.
	// Default 100,000.
	RequestLog int

	// StatusLog is how many accepted statuses are remembered per pod; older
	// ones are dropped. Default 1,000.
	StatusLog int

	// VolumeHealth keeps status.volumeHealth, as a server with the feature
	// gate CSIVolumeHealth does. By default the field is dropped without a
	// word, as a real server of 1.37 does.
	VolumeHealth bool

	// Logger gets a line per refused connection or internal problem. Nil
	// discards them.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.EventWindow < 0 || o.RequestLog < 0 || o.StatusLog < 0 || o.BookmarkInterval < 0 {
		return o, fmt.Errorf("fakeapi options: negative limit; use zero for the default")
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.EventWindow == 0 {
		o.EventWindow = 16384
	}
	if o.BookmarkInterval == 0 {
		o.BookmarkInterval = time.Minute
	}
	if o.RequestLog == 0 {
		o.RequestLog = 100_000
	}
	if o.StatusLog == 0 {
		o.StatusLog = 1000
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
