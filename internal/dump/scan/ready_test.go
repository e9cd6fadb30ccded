// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/s2"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// TestReady_AsDecoded: whatever else a status has, the shortcut says what decoding
// it says.
func TestReady_AsDecoded(t *testing.T) {
	p := new(prefix) // used again and again, as it is
	rapid.Check(t, func(t *rapid.T) {
		s := &v1.PodStatus{Phase: v1.PodPhase(rapid.SampledFrom([]string{"", "Running", "Failed"}).Draw(t, "phase")), Message: rapid.String().Draw(t, "message")}
		want := Unstated
		for range rapid.IntRange(0, 8).Draw(t, "conditions") {
			c := v1.PodCondition{Type: v1.PodConditionType(rapid.SampledFrom([]string{"Ready", "Initialized", "ContainersReady", "x", "Reads", ""}).Draw(t, "type")),
				Status: v1.ConditionStatus(rapid.SampledFrom([]string{"True", "False", "Unknown", "Truest", "Tru", "Trux", ""}).Draw(t, "status")), Message: rapid.StringN(0, 300, -1).Draw(t, "text")}
			s.Conditions = append(s.Conditions, c)
			if c.Type == v1.PodReady && want == Unstated {
				want = NotReady
				if c.Status == v1.ConditionTrue {
					want = Ready
				}
			}
		}
		raw, err := podstatus.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]Record{
			"plain":      {status: raw, ContentType: []byte(journal.ContentTypeProtobuf)},
			"compressed": {status: s2.Encode(nil, raw), compression: 1, ContentType: []byte(journal.ContentTypeProtobuf)},
		} {
			if got := r.ready(p); len(raw) > 0 && got != want {
				t.Errorf("%s: got %d, want %d", name, got, want)
			}
		}
	})
}

func TestPrefix_AsDecoded(t *testing.T) {
	p := new(prefix) // used again and again, as it is
	rapid.Check(t, func(t *rapid.T) {
		var text []byte
		for range rapid.IntRange(0, 30).Draw(t, "parts") {
			part := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "part")
			text = append(text, bytes.Repeat(part, rapid.SampledFrom([]int{1, 1, 2, 90, 3000}).Draw(t, "times"))...)
		}
		steps := rapid.SliceOfN(rapid.IntRange(0, maxPrefix+100), 0, 5).Draw(t, "steps")
		for _, block := range [][]byte{s2.Encode(nil, text), s2.EncodeBetter(nil, text), s2.EncodeSnappy(nil, text)} {
			if !p.begin(block) {
				t.Fatal("not a block")
			}
			for _, n := range steps {
				if got, want := p.has(n), n <= min(len(text), maxPrefix); got != want {
					t.Fatalf("%d bytes of %d: got %v", n, len(text), got)
				}
				if p.n > len(text) || !bytes.Equal(p.text[:p.n], text[:p.n]) {
					t.Fatalf("got %d bytes that are not the first ones", p.n)
				}
			}
		}
	})
}

// FuzzPrefix: what is no block gives no panic, and what is one its beginning.
func FuzzPrefix(f *testing.F) {
	f.Add(s2.Encode(nil, bytes.Repeat([]byte("status"), 100)))
	f.Add([]byte{4, 0x01, 0x00})
	f.Fuzz(func(t *testing.T, block []byte) {
		p := new(prefix)
		for n := 1; n < maxPrefix && p.begin(block) && p.has(n); n += 100 {
		}
		p.ready()
		if n, err := s2.DecodedLen(block); err != nil || n > 1<<20 {
			return
		}
		if want, err := s2.Decode(nil, block); err == nil {
			n := min(len(want), maxPrefix)
			if !p.begin(block) || !p.has(n) || !bytes.Equal(p.text[:n], want[:n]) {
				t.Errorf("got %q; want the beginning of %q", p.text[:p.n], want)
			}
		}
	})
}
