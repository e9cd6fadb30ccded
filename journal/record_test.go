// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sample() Event {
	e := set("uid-a", strings.Repeat("status ", 40))
	e.Sequence, e.Epoch, e.Version, e.Incarnation, e.Time = 7, 3, 5, 1, time.Unix(1700000000, 123).UTC()
	e.Aux, e.Attributes = []byte("aux"), map[string]string{"a": "1", "b": "2"}
	return e
}

func encoded(e Event) (key, value []byte) {
	key = sequenceKey(e.Sequence)
	return key, encodeRecord(newSealer(), key, &e, newPayload(e.Status))
}

func TestRecordRoundTrip(t *testing.T) {
	want := sample()
	key, value := encoded(want)
	got, err := decodeRecord(key, value)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(value) > len(want.Status) {
		t.Errorf("%d bytes for a status of %d that compresses well", len(value), len(want.Status))
	}
}

// TestRecordEveryBit: no single changed bit in key or value goes unnoticed.
func TestRecordEveryBit(t *testing.T) {
	key, value := encoded(sample())
	for i := range 8 * (len(key) + len(value)) {
		k, v := bytes.Clone(key), bytes.Clone(value)
		if i/8 < len(k) {
			k[i/8] ^= 1 << (i % 8)
		} else {
			v[i/8-len(k)] ^= 1 << (i % 8)
		}
		if _, err := decodeRecord(k, v); err == nil {
			t.Fatalf("bit %d of byte %d changed unnoticed", i%8, i/8)
		}
	}
}

func TestRecordNewerFormat(t *testing.T) {
	s, key := newSealer(), sequenceKey(1)
	s.begin(2)
	s.uint(recordFormat + 1)
	s.string("who knows")
	if _, err := decodeRecord(key, s.finish(key)); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("got %v", err)
	}
}

// TestRecordAppendedElements: a record of a newer release with more elements at
// its end, and of an unknown kind, is still read.
func TestRecordAppendedElements(t *testing.T) {
	e := sample()
	e.Kind, e.Attributes = 42, nil
	key := sequenceKey(e.Sequence)
	value := encodeRecord(newSealer(), key, &e, newPayload(e.Status))
	s := newSealer()
	body := append([]byte{}, value[:len(value)-sealBytes]...)
	if body[0] != 0xdc { // array of more than 15 elements
		t.Fatalf("record begins with %#x", body[0])
	}
	body[2]++
	s.buf.Write(append(body, 0xa1, 'x'))
	got, err := decodeRecord(key, s.finish(key))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, got); diff != "" {
		t.Error(diff)
	}
	if got.Kind.String() != "kind(42)" {
		t.Error(got.Kind)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	key, value := encoded(sample())
	f.Add(key, value[:len(value)-sealBytes])
	f.Add(key, []byte{0xdc, 0xff, 0xff})
	f.Add([]byte("k"), []byte{0x91})
	f.Fuzz(func(t *testing.T, key, body []byte) {
		s := newSealer()
		s.buf.Write(body)
		value := s.finish(key) // a right checksum, so that the parser is reached
		for name, decode := range map[string]func() error{
			"record": func() error { _, err := decodeRecord(key, value); return err },
			"head":   func() error { _, err := decodeHead(value); return err },
			"index":  func() error { _, err := decodePodIndex(key, value); return err },
			"ack":    func() error { _, err := decodeAck(key, value); return err },
			"object": func() error { _, err := decodeObject(key, value); return err },
			"about":  func() error { _, err := decodeAbout(value); return err },
			"opened": func() error { _, err := decodeOpened(value); return err },
		} {
			if err := decode(); err != nil && strings.Contains(err.Error(), "panic") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
