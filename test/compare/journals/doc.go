// SPDX-License-Identifier: Apache-2.0

// Package journals measures the journal beside other ways to make the same
// events durable, on one file system, in one run.
//
// # Unit
//
// The time of one pwrite + fdatasync of 4 KiB into a preallocated file. It is
// measured before and after each slice of each engine, because disks drift within
// minutes: only ratios of one run mean anything.
//
// # What the engines do
//
//	ours          journal.Append and PutAck: events with CRC, index, acks, retention
//	pebble        the same job: event, newest ack per pod, head, oldest events deleted
//	sqlite        the same job in three tables
//	bbolt Batch   event, ack, head, retention through db.Batch at its defaults
//	tidwall/wal   events alone, appended and synced
//	raft-wal      events alone: a pure log, shown for orientation
//	etcd wal      events alone: a pure log, shown for orientation
//
// All but ours and Batch get the same group commit, which is their best case (see
// grouped). They store the status as encoded; ours compresses it, which is part of
// its design, and which an option gives to the others as well.
package journals
