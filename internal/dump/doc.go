// SPDX-License-Identifier: Apache-2.0

// Package dump is journal-dump: it reads a journal and tells what is in it.
//
//	FILE, data directory ──────────────────────┐             ┌─ scan: events of a sound file
//	standard input ──▶ unlinked copy ──────────┤             │       │ from the first unsound record on
//	--socket ── GET snapshot ──▶ unlinked copy ┴─▶ source ───┴─ journal.Reader ─▶ verb ─▶ output
//	--socket --follow ── GET events ───────────────────────────────────────────▶ events
//
// One file per verb, each of which reads iterators and writes rows as they come:
// memory is bounded by the number of pods, never by the history (a timeline's page
// aside, which has a limit of events).
//
// # Promises
//
// The journal is opened read-only: its bytes, its times and its directory stay
// as they are, and nothing is created in its place (C56). Standard output holds
// results only; everything about the journal itself goes to standard error.
// Damage hides nothing but itself: what is good is printed in order, each damaged
// place is named, and the exit code is 1. Text from pods is escaped, so it cannot
// drive a terminal (C61), and in a page it is data, never markup.
//
// With --redact, text that is not of Kubernetes' own vocabulary leaves the program
// in no output: it is replaced where events, entries and figures are made ready to
// be printed, by the one redactor.
//
// # Concurrency
//
// While a file is read its shared lock is held, which keeps an agent from opening
// it. A running agent is therefore read through its socket. Nothing here is for
// concurrent use.
package dump
