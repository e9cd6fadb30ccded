// SPDX-License-Identifier: Apache-2.0

// Package scan reads all events of a sound journal, fast: a few times what the
// storage engine's own cursor takes, checksums included.
//
//	tree of events ──▶ leaf pages in order ──▶ batches ──▶ read on every processor: checksum, parse, keep?
//	                                              └──────── in order ────────▶ visit
//
// It maps the file, which is half the price of copying it, and gives mapped pages
// back as it goes, so its memory stays small whatever the file's size. A file that
// somebody cuts meanwhile is unsound, no fault.
//
// # Promise
//
// What it gives is right: every record's checksum was compared, every sequence
// follows the one before. What is not as docs/format.md says ends the scan with
// ErrUnsound and the sequence from which on journal.Reader is to be asked, whose
// business it is to tell what is wrong. So this package knows the format, and one
// way to say no.
//
// # Concurrency
//
// Open takes the shared lock that keeps writers out and Close releases it. Scan
// starts goroutines, has joined them when it returns, and visits on its caller's. A File is not for
// concurrent use.
package scan
