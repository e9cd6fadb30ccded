// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
	bolt "go.etcd.io/bbolt"
)

// What follows is written from docs/format.md alone and uses nothing of the
// package: if the two disagree, one of them is wrong.

// seal checks a sealed value and returns its elements without the CRC.
func seal(key, value []byte) ([]any, error) {
	const crcBytes = 5
	if len(value) < 1+crcBytes || value[len(value)-crcBytes] != 0xce {
		return nil, errors.New("no CRC at the end")
	}
	covered := append(slices.Clone(key), value[:len(value)-crcBytes]...)
	if sum := crc32.Checksum(covered, crc32.MakeTable(crc32.Castagnoli)); sum != binary.BigEndian.Uint32(value[len(value)-4:]) {
		return nil, fmt.Errorf("CRC %08x does not match", sum)
	}
	decoded, rest, err := unpackValue(value)
	if err != nil || len(rest) != 0 {
		return nil, fmt.Errorf("%d bytes left: %w", len(rest), err)
	}
	elements, ok := decoded.([]any)
	if !ok || len(elements) < 2 {
		return nil, errors.New("not an array")
	}
	return elements[:len(elements)-1], nil
}

// unpackValue reads one msgpack value: uint64 or int64, string, []byte, bool,
// nil or []any.
func unpackValue(b []byte) (v any, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, io.ErrUnexpectedEOF
	}
	code, b := b[0], b[1:]
	number := func(n int) uint64 {
		if len(b) < n {
			err = io.ErrUnexpectedEOF
			return 0
		}
		var wide [8]byte
		copy(wide[8-n:], b[:n])
		b = b[n:]
		return binary.BigEndian.Uint64(wide[:])
	}
	raw := func(n uint64) []byte {
		if uint64(len(b)) < n {
			err = io.ErrUnexpectedEOF
			return nil
		}
		var out []byte
		out, b = b[:n], b[n:]
		return slices.Clone(out)
	}
	array := func(n uint64) any {
		out := []any{}
		for range n {
			var e any
			if e, b, err = unpackValue(b); err != nil {
				return nil
			}
			out = append(out, e)
		}
		return out
	}
	switch {
	case code < 0x80:
		v = uint64(code)
	case code >= 0xe0:
		v = int64(int8(code))
	case code&0xe0 == 0xa0:
		v = string(raw(uint64(code & 0x1f)))
	case code&0xf0 == 0x90:
		v = array(uint64(code & 0x0f))
	case code == 0xc0:
		v = nil
	case code == 0xc2, code == 0xc3:
		v = code == 0xc3
	case code >= 0xc4 && code <= 0xc6: // bin
		v = raw(number(1 << (code - 0xc4)))
	case code >= 0xcc && code <= 0xcf:
		v = number(1 << (code - 0xcc))
	case code >= 0xd0 && code <= 0xd3:
		n := 1 << (code - 0xd0)
		shift := 64 - 8*n
		v = int64(number(n)<<shift) >> shift
	case code >= 0xd9 && code <= 0xdb: // str
		v = string(raw(number(1 << (code - 0xd9))))
	case code == 0xdc, code == 0xdd:
		v = array(number(2 << (code - 0xdc)))
	default:
		err = fmt.Errorf("msgpack code %#x", code)
	}
	return v, b, err
}

// document is what format.md says of one file.
type document struct {
	format         uint32
	about, opened  []any
	head           []any
	events         [][]any // with their keys before them
	pods           map[string][]any
	acks           map[string][]any
	objects        map[string][]byte
	sums           map[string]uint64 // as the head should have them
	openings       map[uint64]any    // epochs by sequence
	foreignKeys    int
	foreignBuckets []string
}

func parseDocument(t *testing.T, path string) (d document) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	sealed := func(bucket string, key, value []byte) []any {
		elements, err := seal(key, value)
		if err != nil {
			t.Errorf("bucket %s, key %q: %v", bucket, key, err)
		}
		return elements
	}
	err = db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket([]byte("meta"))
		if got := string(meta.Get([]byte("magic"))); got != "statusstore-journal" {
			t.Errorf("magic %q", got)
		}
		d.format = binary.BigEndian.Uint32(meta.Get([]byte("format")))
		for key, to := range map[string]*[]any{"about": &d.about, "head": &d.head, "opened": &d.opened} {
			*to = sealed("meta", []byte(key), meta.Get([]byte(key)))
		}
		d.pods, d.acks, d.objects = map[string][]any{}, map[string][]any{}, map[string][]byte{}
		d.sums, d.openings = map[string]uint64{}, map[uint64]any{}
		each := func(bucket string, visit func(k []byte, elements []any)) {
			tx.Bucket([]byte(bucket)).ForEach(func(k, v []byte) error { //nolint:errcheck // visit has none
				if bucket == "events" && len(k) != 8 {
					d.foreignKeys++
					return nil
				}
				d.sums[bucket] += uint64(binary.BigEndian.Uint32(v[len(v)-4:])) + 1<<32
				visit(k, sealed(bucket, k, v))
				return nil
			})
		}
		each("events", func(k []byte, elements []any) {
			d.events = append(d.events, append([]any{binary.BigEndian.Uint64(k)}, elements...))
		})
		each("pods", func(k []byte, elements []any) { d.pods[string(k)] = elements })
		each("acks", func(k []byte, elements []any) { d.acks[string(k)] = elements })
		each("objects", func(k []byte, elements []any) { d.objects[string(k)] = decompress(t, elements[0], elements[1]) })
		if tx.Bucket([]byte("openings")) != nil {
			each("openings", func(k []byte, elements []any) { d.openings[binary.BigEndian.Uint64(k)] = elements[0] })
		}
		return tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
			if !slices.Contains([]string{"meta", "events", "pods", "acks", "objects", "openings"}, string(name)) {
				d.foreignBuckets = append(d.foreignBuckets, string(name))
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// decompress undoes compression 0 and 1.
func decompress(t *testing.T, compression, data any) []byte {
	t.Helper()
	b, _ := data.([]byte) // nil when empty
	if compression == uint64(1) {
		out, err := s2.Decode(nil, b)
		if err != nil {
			t.Error(err)
		}
		return out
	}
	if compression != uint64(0) {
		t.Errorf("compression %v", compression)
	}
	return b
}

// integer reads an integer of any width.
func integer(t *testing.T, v any) int64 {
	t.Helper()
	switch n := v.(type) {
	case uint64:
		if n > math.MaxInt64 {
			t.Errorf("%d is too large", n)
		}
		return int64(n)
	case int64:
		return n
	}
	t.Errorf("%v (%T) is not an integer", v, v)
	return 0
}

// asGolden turns an event into the shape of the JSON beside the files.
func asGolden(t *testing.T, e []any) map[string]any {
	t.Helper()
	key, e := e[0], e[1:]
	if len(e) < 17 || e[0] != uint64(1) || e[2] != key {
		t.Fatalf("record %v under key %v", e, key)
	}
	out := map[string]any{}
	put := func(name string, v any) {
		switch x := v.(type) {
		case uint64, int64:
			v = float64(integer(t, v))
			if name == "Incarnation" && v == 0.0 {
				return
			}
		case string:
			if x == "" {
				return
			}
		case bool:
			if !x {
				return
			}
		case []byte:
			if len(x) == 0 {
				return
			}
			encoded, _ := json.Marshal(x)
			v = strings.Trim(string(encoded), `"`)
		}
		out[name] = v
	}
	for i, name := range []string{"", "Kind", "Sequence", "Epoch", "Time", "UID", "Namespace", "Name", "Version", "Incarnation", "Finished", "Reason", "ContentType"} {
		if i > 0 {
			put(name, e[i])
		}
	}
	put("Status", decompress(t, e[13], e[14]))
	aux, _ := e[15].([]byte)
	put("Aux", aux)
	if len(e) > 17 { // the earliest records end before it
		put("First", e[17])
	}
	attributes := map[string]any{}
	list, _ := e[16].([]any)
	for i := 0; i+1 < len(list); i += 2 {
		attributes[list[i].(string)] = list[i+1]
	}
	if len(attributes) > 0 {
		out["Attributes"] = attributes
	}
	return out
}

// TestGolden_FormatDocument reads the golden files as another program would, and
// checks each statement of docs/format.md that a file can show.
func TestGolden_FormatDocument(t *testing.T) {
	paths, err := filepath.Glob("testdata/v1-*.db.gz")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	var floor, horizon, suspects, foreign, finished, tombstones, compressed, firsts int64
	for _, packed := range paths {
		t.Run(filepath.Base(packed), func(t *testing.T) {
			d := parseDocument(t, gunzip(t, packed))
			var want struct {
				Node    string
				Created float64
				Events  []map[string]any
				Acks    []map[string]any
				Objects map[string][]byte
			}
			text, err := os.ReadFile(strings.TrimSuffix(packed, ".db.gz") + ".json")
			if err := errors.Join(err, json.Unmarshal(text, &want)); err != nil {
				t.Fatal(err)
			}
			if d.format != 1 || len(d.about) != 2 || d.about[0] != want.Node || len(d.opened) != 1 {
				t.Errorf("format %d, about %v, opened %v", d.format, d.about, d.opened)
			}
			var got []map[string]any
			newest := map[string]map[string]any{}
			for _, e := range d.events {
				g := asGolden(t, e)
				got = append(got, g)
				if kind := integer(t, e[2]); kind >= 1 && kind <= 3 {
					newest[g["UID"].(string)] = g
				}
				if e[14] == uint64(1) {
					compressed++
				}
				if g["First"] == true {
					firsts++
				}
			}
			if diff := cmp.Diff(want.Events, got); diff != "" {
				t.Errorf("-written +document:\n%s", diff)
			}
			if diff := cmp.Diff(want.Objects, d.objects); diff != "" {
				t.Errorf("-written +document:\n%s", diff)
			}
			for _, a := range want.Acks {
				ack := d.acks[a["UID"].(string)]
				if len(ack) != 3 || ack[0] != a["LiveUID"] || float64(integer(t, ack[1])) != a["Version"] || float64(integer(t, ack[2])) != a["Time"] {
					t.Errorf("ack %v, want %v", ack, a)
				}
			}
			if len(d.acks) != len(want.Acks) {
				t.Errorf("%d acks", len(d.acks))
			}
			d.checkHead(t)
			d.checkIndex(t, newest)
			floor, horizon = max(floor, integer(t, d.head[6])), max(horizon, integer(t, d.head[4]))
			suspects += int64(len(d.head[7].([]any)))
			foreign += int64(d.foreignKeys + len(d.foreignBuckets))
			for _, p := range d.pods {
				if p[3] == true {
					finished++
				}
				if p[4] == true {
					tombstones++
				}
			}
		})
	}
	if floor == 0 || horizon == 0 || suspects == 0 || foreign == 0 || finished == 0 || tombstones == 0 || compressed == 0 || firsts == 0 {
		t.Errorf("the files show too little: floor %d, horizon %d, suspects %d, foreign %d, finished %d, tombstones %d, compressed %d, firsts %d",
			floor, horizon, suspects, foreign, finished, tombstones, compressed, firsts)
	}
}

// checkHead: what the head says of the events, and the rule of contiguity.
func (d document) checkHead(t *testing.T) {
	t.Helper()
	switch len(d.head) {
	case 8: // of an earlier release
	case 12:
		for i, bucket := range []string{"pods", "acks", "objects"} {
			if d.head[8+i] != d.sums[bucket] {
				t.Errorf("sum of %s is %v, want %d", bucket, d.head[8+i], d.sums[bucket])
			}
		}
		for _, e := range d.events {
			if epoch, listed := d.openings[e[0].(uint64)]; (e[2] == uint64(5)) != listed || listed && epoch != e[4] {
				t.Errorf("event %v is listed as the opening of epoch %v: %v", e, epoch, listed)
			}
		}
	default:
		t.Fatalf("head has %d elements", len(d.head))
	}
	sequence, epoch, horizon := integer(t, d.head[0]), integer(t, d.head[1]), integer(t, d.head[4])
	last, opened := int64(0), int64(0)
	for _, e := range d.events {
		seq := integer(t, e[0])
		if seq > last+1 && last+1 > horizon {
			t.Errorf("sequence %d after %d, above the horizon %d", seq, last, horizon)
		}
		if last = seq; e[2] == uint64(5) {
			opened = integer(t, e[4])
		}
	}
	if last != sequence || opened != epoch || integer(t, d.head[2]) != int64(len(d.events)) {
		t.Errorf("head %v, but the last event is %d, the newest opened has epoch %d, there are %d events", d.head, last, opened, len(d.events))
	}
}

// checkIndex: index records are of each pod's newest event at or below indexed.
func (d document) checkIndex(t *testing.T, newest map[string]map[string]any) {
	t.Helper()
	indexed := float64(integer(t, d.head[5]))
	for uid, e := range newest {
		p, ok := d.pods[uid]
		if e["Sequence"].(float64) > indexed {
			continue // not covered yet
		}
		if !ok || len(p) != 6 || float64(integer(t, p[0])) != e["Sequence"] || float64(integer(t, p[1])) != e["Version"] || p[4] != (e["Kind"] == 3.0) {
			t.Errorf("index record of %s is %v, its newest event %v", uid, p, e)
		}
	}
}

func gunzip(t *testing.T, packed string) string {
	t.Helper()
	f, err := os.Open(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(z)
	path := filepath.Join(t.TempDir(), "journal.db")
	if err := errors.Join(err, os.WriteFile(path, content, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}
