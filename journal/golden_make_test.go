// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var makeGolden = flag.Bool("make-golden", false, "write those golden files that are not in testdata")

// goldenMakers make the files of the current format. A file that is there is
// never written again: it is what a release has left on somebody's disk.
var goldenMakers = map[string]func(t *testing.T, path string){
	"v1-kinds":    makeKinds,
	"v1-sums":     makeKinds,
	"v1-unclean":  makeUnclean,
	"v1-trimmed":  makeTrimmed,
	"v1-torn":     func(t *testing.T, path string) { makeUnclean(t, path); tearNewest(t, path) },
	"v1-suspect":  makeSuspect,
	"v1-salvaged": makeSalvaged,
	"v1-extended": makeExtended,
}

func TestGolden_Make(t *testing.T) {
	if !*makeGolden {
		t.Skip("only with -make-golden")
	}
	for name, make := range goldenMakers {
		out := "testdata/" + name
		if _, err := os.Stat(out + ".db.gz"); err == nil {
			continue
		}
		path := filepath.Join(t.TempDir(), FileName)
		make(t, path)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		_, err = z.Write(content)
		expected, err2 := json.MarshalIndent(readGolden(t, path), "", " ")
		err = errors.Join(err, err2, z.Close(), os.WriteFile(out+".db.gz", packed.Bytes(), 0o644), os.WriteFile(out+".json", append(expected, '\n'), 0o644))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", out, packed.Len())
	}
}

func goldenJournal(t *testing.T, path string, o Options) *Journal {
	t.Helper()
	o.Node, o.Software = goldenNode, "golden"
	j, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func closeGolden(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// goldenEventOf is an event with a status as the manager would store it.
func goldenEventOf(t *testing.T, uid types.UID, kind Kind, reason Reason, phase corev1.PodPhase, message string) Event {
	t.Helper()
	e := Event{Kind: kind, Reason: reason, UID: uid, Namespace: "default", Name: "pod-" + string(uid)}
	if kind == KindRemoved {
		return e
	}
	status := corev1.PodStatus{Phase: phase, Message: message, PodIP: "10.0.0.1",
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1_700_000_000, 0)}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Image: "registry.example/app:1", Ready: true, ContainerID: "containerd://0123456789abcdef"}}}
	var err error
	if e.Status, err = status.Marshal(); err != nil {
		t.Fatal(err)
	}
	e.ContentType = ContentTypeProtobuf
	return e
}

func withGoldenObject(t *testing.T, e Event) Event {
	t.Helper()
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, UID: e.UID, Labels: map[string]string{"app": "golden"}},
		Spec: corev1.PodSpec{NodeName: goldenNode, Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:1"}}}}
	var err error
	if e.Object, err = pod.Marshal(); err != nil {
		t.Fatal(err)
	}
	return e
}

// makeKinds has each kind and reason, aux, attributes, an object, and acks.
func makeKinds(t *testing.T, path string) {
	j := goldenJournal(t, path, Options{})
	for i, reason := range []Reason{ReasonSet, ReasonReadiness, ReasonStartup, ReasonTerminate, ReasonResize, ReasonVolume, ReasonObserved} {
		e := goldenEventOf(t, "a", KindSet, reason, corev1.PodRunning, fmt.Sprint("set ", i))
		e.Aux = []byte{byte(i), 0, 0xff}[:i%4]
		mustAppend(t, j, withGoldenObject(t, e))
	}
	long := goldenEventOf(t, "b", KindSet, ReasonSet, corev1.PodPending, string(bytes.Repeat([]byte("compresses well "), 200)))
	long.Namespace, long.Name = "kube-system", "ünïcode"
	mustAppend(t, j, long, goldenEventOf(t, "c", KindSet, ReasonSet, corev1.PodRunning, ""), Event{Kind: KindSet, Reason: ReasonSet, UID: "empty", Namespace: "default", Name: "pod-empty"})
	rejected := goldenEventOf(t, "a", KindRejected, "", corev1.PodPending, "")
	rejected.Attributes = map[string]string{AttrContainer: "app", AttrFrom: "terminated", AttrTo: "running", AttrMessage: "a terminated container does not run again"}
	mustAppend(t, j, rejected, Event{Kind: KindRejected, UID: "unknown", Namespace: "default", Name: "pod-unknown"})
	mustAppend(t, j, withGoldenObject(t, goldenEventOf(t, "b", KindFinished, "", corev1.PodSucceeded, "done")))
	for i, reason := range []Reason{ReasonOrphaned, ReasonDeleted, ReasonRecreated} {
		uid := types.UID(fmt.Sprint("gone-", i))
		mustAppend(t, j, withGoldenObject(t, goldenEventOf(t, uid, KindSet, ReasonSet, corev1.PodRunning, "")), goldenEventOf(t, uid, KindRemoved, reason, "", ""))
	}
	mustAppend(t, j, goldenEventOf(t, "gone-2", KindSet, ReasonSet, corev1.PodRunning, "a new incarnation"))
	j.PutAck(Ack{UID: "a", LiveUID: "a", Version: 7, Time: time.Unix(1_700_000_001, 5)})
	j.PutAck(Ack{UID: "c", LiveUID: "mirror-of-c", Version: 1, Time: time.Unix(1_700_000_002, 0)})
	closeGolden(t, j)
	closeGolden(t, goldenJournal(t, path, Options{}))
}

// makeUnclean is what a kill leaves: events that the index does not cover.
func makeUnclean(t *testing.T, path string) {
	live := filepath.Join(t.TempDir(), FileName)
	j := goldenJournal(t, live, Options{})
	for i := range 20 {
		mustAppend(t, j, goldenEventOf(t, types.UID(fmt.Sprint("p", i%3)), KindSet, ReasonSet, corev1.PodRunning, fmt.Sprint(i)))
	}
	closeGolden(t, j)
	j = goldenJournal(t, live, Options{})
	mustAppend(t, j, goldenEventOf(t, "p1", KindSet, ReasonSet, corev1.PodFailed, "after the index"))
	mustAppend(t, j, goldenEventOf(t, "p2", KindRemoved, ReasonDeleted, "", ""), goldenEventOf(t, "new", KindSet, ReasonSet, corev1.PodPending, ""))
	j.PutAck(Ack{UID: "p1", LiveUID: "p1", Version: 7, Time: time.Unix(1_700_000_003, 0)})
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(live)
	if err := errors.Join(err, os.WriteFile(path, content, 0o600)); err != nil {
		t.Fatal(err)
	}
	closeGolden(t, j)
}

// makeTrimmed has a horizon, a spared event below it, tombstones, a floor above
// forgotten ones, and more than one page of events.
func makeTrimmed(t *testing.T, path string) {
	o := Options{Retention: Retention{MaxEvents: 60, TombstoneAge: time.Nanosecond}}
	j := goldenJournal(t, path, o)
	mustAppend(t, j, goldenEventOf(t, "quiet", KindSet, ReasonSet, corev1.PodRunning, "never changes"))
	for i := range 30 {
		uid := types.UID(fmt.Sprint("forgotten-", i%3))
		mustAppend(t, j, goldenEventOf(t, uid, KindSet, ReasonSet, corev1.PodRunning, ""))
		if i >= 27 {
			mustAppend(t, j, goldenEventOf(t, uid, KindRemoved, ReasonOrphaned, "", ""))
		}
	}
	for i := range 150 {
		mustAppend(t, j, goldenEventOf(t, types.UID(fmt.Sprint("busy-", i%4)), KindSet, ReasonSet, corev1.PodRunning, fmt.Sprint(i)))
	}
	closeGolden(t, j)
	o.Retention.TombstoneAge = time.Hour
	j = goldenJournal(t, path, o)
	mustAppend(t, j, goldenEventOf(t, "busy-3", KindRemoved, ReasonDeleted, "", ""))
	closeGolden(t, j)
}

// tearNewest makes the newer meta page invalid.
func tearNewest(t *testing.T, path string) {
	t.Helper()
	patch(t, path, func(b []byte) []byte {
		first, _ := parseBoltMeta(b)
		second, _ := parseBoltMeta(b[first.pageSize:])
		at := 0
		if second.txid > first.txid {
			at = int(first.pageSize)
		}
		b[at+pageHeaderSize+20] ^= 1
		return b
	})
}

// makeSuspect was opened with a torn meta page, and went on.
func makeSuspect(t *testing.T, path string) {
	makeUnclean(t, path)
	tearNewest(t, path)
	j := goldenJournal(t, path, Options{})
	mustAppend(t, j, goldenEventOf(t, "p1", KindSet, ReasonSet, corev1.PodFailed, "skips a version"))
	mustAppend(t, j, goldenEventOf(t, "later", KindSet, ReasonSet, corev1.PodRunning, "skips one too"))
	closeGolden(t, j)
}

// makeSalvaged lost a page of events.
func makeSalvaged(t *testing.T, path string) {
	damaged := filepath.Join(t.TempDir(), FileName)
	j := goldenJournal(t, damaged, Options{})
	for i := range 60 {
		mustAppend(t, j, withGoldenObject(t, goldenEventOf(t, types.UID(fmt.Sprint("p", i%5)), KindSet, ReasonSet, corev1.PodRunning, fmt.Sprintf("number <%d>", i))))
	}
	j.PutAck(Ack{UID: "p1", LiveUID: "p1", Version: 2, Time: time.Unix(1_700_000_004, 0)})
	closeGolden(t, j)
	patch(t, damaged, func(b []byte) []byte {
		for at := 0; ; {
			i := bytes.Index(b[at:], []byte("number <30>"))
			if i < 0 {
				return b
			}
			at += i
			clear(b[at&^4095:][:4096])
		}
	})
	if _, err := Salvage(t.Context(), damaged, path); err != nil {
		t.Fatal(err)
	}
}

// makeExtended has what later releases may add without a new format: an unknown
// kind, elements at the end of a record, a key and a bucket of their own.
func makeExtended(t *testing.T, path string) {
	j := goldenJournal(t, path, Options{})
	e := mustAppend(t, j, goldenEventOf(t, "a", KindSet, ReasonSet, corev1.PodRunning, ""))[0]
	e = mustAppend(t, j, Event{Kind: KindRejected, UID: "a", Namespace: "default", Name: "pod-a"})[0]
	closeGolden(t, j)
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		events, meta := tx.Bucket(bucketEvents), tx.Bucket(bucketMeta)
		later, err := tx.CreateBucket([]byte("later"))
		if err != nil {
			return err
		}
		h, err := decodeHead(meta.Get(keyHead))
		if err != nil {
			return err
		}
		key := sequenceKey(e.Sequence)
		e.Kind = 42
		value := encodeRecord(newSealer(), key, &e, payload{})
		s := newSealer()
		value[2]++ // one element more in the array
		s.buf.Write(value[:len(value)-sealBytes])
		s.string("a later element")
		value = s.finish(key)
		h.Bytes += uint64(len(value) - len(events.Get(key)))
		return errors.Join(later.Put([]byte("key"), []byte("value")), events.Put([]byte("later"), []byte("value")), events.Put(key, value),
			meta.Put(keyHead, h.encode(newSealer())))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
