// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/journal"
)

// TestSalvage_LostObjects: an object of which it can't be told that it is the
// newest is named with what is lost, in text and in JSON.
func TestSalvage_LostObjects(t *testing.T) {
	path := build(t, func(w *writer) { w.many(50, 5) })
	for _, content := range []string{"older", "newer"} { // the first one stays behind in a free page
		withBolt(t, path, func(tx *bolt.Tx) error {
			key := []byte("uid-web-3")
			return tx.Bucket([]byte("objects")).Put(key, undated(key, bytes.Repeat([]byte(content), 1500)))
		})
	}
	check := untouched(t, path)
	dst := filepath.Join(t.TempDir(), "salvaged.db")
	got := run("salvage", path, dst)
	wantRun(t, got, exitOK, "the object of pod uid-web-3 is left out")
	if !strings.Contains(got.out, "0 objects; 0 events lost, 1 objects left out") {
		t.Errorf("stdout: got %q", got.out)
	}
	got = run("salvage", "-o", "json", path, dst+"2")
	wantRun(t, got, exitOK, "the object of pod uid-web-3 is left out")
	var result journal.SalvageResult
	if err := json.Unmarshal([]byte(got.out), &result); err != nil || !slices.Equal(result.LostObjects, []types.UID{"uid-web-3"}) {
		t.Errorf("JSON: got %s, %v", got.out, err)
	}
	check()
}

// undated is a sealed pod object as earlier releases wrote it: without the
// sequence that says which of two is newer.
func undated(key, object []byte) []byte {
	value := append([]byte{0x93, 0, 0xc5}, byte(len(object)>>8), byte(len(object)))
	value = append(value, object...)
	table := crc32.MakeTable(crc32.Castagnoli)
	return binary.BigEndian.AppendUint32(append(value, 0xce), crc32.Update(crc32.Checksum(key, table), table, value))
}
