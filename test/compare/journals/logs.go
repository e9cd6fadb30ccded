// SPDX-License-Identifier: Apache-2.0

package journals

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	tidwall "github.com/tidwall/wal"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// The logs below keep events in order and nothing else: no acks, no index, no
// newest event per pod.

type tidwallLog struct{ log *tidwall.Log }

func openTidwall(dir string) (engine, error) {
	l, err := tidwall.Open(filepath.Join(dir, "tidwall"), nil) // syncs each batch
	if err != nil {
		return nil, err
	}
	return newGrouped(tidwallLog{l}), nil
}

func (t tidwallLog) commit(first uint64, batch []event, _ []ack) error {
	var b tidwall.Batch
	for i, e := range batch {
		b.Write(first+uint64(i), record(e))
	}
	return t.log.WriteBatch(&b)
}

func (t tidwallLog) close() error { return t.log.Close() }

type raftLog struct{ wal *raftwal.WAL }

func openRaftWAL(dir string) (engine, error) {
	dir = filepath.Join(dir, "raft-wal")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	w, err := raftwal.Open(dir)
	if err != nil {
		return nil, err
	}
	return newGrouped(raftLog{w}), nil
}

func (r raftLog) commit(first uint64, batch []event, _ []ack) error {
	logs := make([]*raft.Log, len(batch))
	for i, e := range batch {
		logs[i] = &raft.Log{Index: first + uint64(i), Term: 1, Data: record(e)}
	}
	return r.wal.StoreLogs(logs)
}

func (r raftLog) close() error { return r.wal.Close() }

type etcdLog struct{ wal *wal.WAL }

func openEtcdWAL(dir string) (engine, error) {
	w, err := wal.Create(zap.NewNop(), filepath.Join(dir, "etcd-wal"), nil)
	if err != nil {
		return nil, err
	}
	return newGrouped(etcdLog{w}), nil
}

func (l etcdLog) commit(first uint64, batch []event, _ []ack) error {
	entries := make([]*raftpb.Entry, len(batch))
	for i, e := range batch {
		entries[i] = &raftpb.Entry{Term: new(uint64(1)), Index: new(first + uint64(i)), Data: record(e)}
	}
	return l.wal.Save(&raftpb.HardState{}, entries)
}

func (l etcdLog) close() error { return errors.Join(l.wal.Close()) }
