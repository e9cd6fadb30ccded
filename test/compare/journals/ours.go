// SPDX-License-Identifier: Apache-2.0

package journals

import (
	"context"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// ours is the journal as the manager uses it.
type ours struct{ journal *journal.Journal }

func openOurs(dir string) (engine, error) {
	j, err := journal.Open(filepath.Join(dir, journal.FileName), journal.Options{})
	if err != nil {
		return nil, err
	}
	return ours{j}, nil
}

func set(uid types.UID, status []byte) journal.Event {
	return journal.Event{
		Kind: journal.KindSet, UID: uid, Namespace: "default", Name: string(uid), Reason: journal.ReasonSet,
		ContentType: journal.ContentTypeProtobuf, Status: status,
	}
}

func (o ours) append(e event) error {
	stored, err := o.journal.Append(context.Background(), set(e.uid, e.status))
	if err != nil {
		return err
	}
	o.journal.PutAck(journal.Ack{UID: e.uid, LiveUID: e.uid, Version: stored[0].Version, Time: time.Now()})
	return nil
}

func (o ours) close() error { return o.journal.Close() }
