// SPDX-License-Identifier: Apache-2.0

// Package dump is journal-dump: it reads a journal and tells what is in it.
//
//	FILE, data directory ──────────────────────┐
//	standard input ──▶ unlinked copy ──────────┤
//	--socket ── GET snapshot ──▶ unlinked copy ┴─▶ journal.Reader ─▶ verb ─▶ output
//	--socket --follow ── GET events ───────────────────────────────▶ events
//
// One file per verb, each of which reads iterators and writes rows as they come:
// memory is bounded by the number of pods, never by the history.
//
// # Promises
//
// The journal is opened read-only: its bytes, its times and its directory stay
// as they are, and nothing is created in its place (C56). Standard output holds
// results only; everything about the journal itself goes to standard error.
// Damage hides nothing but itself: what is good is printed in order, each damaged
// place is named, and the exit code is 1. Text from pods is escaped, so it cannot
// drive a terminal (C61).
//
// # Concurrency
//
// While a file is read its shared lock is held, which keeps an agent from opening
// it. A running agent is therefore read through its socket. Nothing here is for
// concurrent use.
package dump
