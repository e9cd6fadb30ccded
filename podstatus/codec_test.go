// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"bytes"
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestCodec_RoundTrip(t *testing.T) {
	for name, s := range map[string]*v1.PodStatus{
		"empty":   {},
		"full":    fullStatus(),
		"ended":   newStatus(v1.PodFailed, containers(terminated("app", 137, message("ünïcode"))), started(at(1, 2, 3))),
		"no year": newStatus(v1.PodPending, started(at(0, 0, 0))),
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Encode(s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(b)
			if err != nil {
				t.Fatal(err)
			}
			check(t, "decoded", got, s)
		})
	}
}

func TestCodec_QuantitiesKeepTheirValue(t *testing.T) {
	s := newStatus(v1.PodRunning)
	s.AllocatedResources = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1500m"), v1.ResourceMemory: resource.MustParse("1.5Gi")}
	b, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range s.AllocatedResources {
		if q := got.AllocatedResources[name]; q.Cmp(want) != 0 {
			t.Errorf("%s = %s, want %s", name, &q, &want)
		}
	}
}

func TestEncode_SameStatusSameBytes(t *testing.T) {
	want, err := Encode(fullStatus())
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		got, err := Encode(fullStatus())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatal("two encodings of one status differ")
		}
	}
}

func TestEncode_Nil(t *testing.T) {
	if _, err := Encode(nil); !errors.Is(err, ErrNoStatus) {
		t.Errorf("Encode(nil) = %v, want ErrNoStatus", err)
	}
}

func TestDecode_Garbage(t *testing.T) {
	for _, b := range malformed {
		if s, err := Decode(b); !errors.Is(err, ErrMalformed) || s != nil {
			t.Errorf("Decode(%q) = %v, %v; want nil, ErrMalformed", b, s, err)
		}
	}
}

func TestDecode_HoldsNoReference(t *testing.T) {
	b, err := Encode(fullStatus())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		b[i] = 0xff
	}
	check(t, "status after its bytes were overwritten", got, fullStatus())
}

// malformed inputs: cut lengths, wrong wire types, a bad quantity.
var malformed = [][]byte{
	[]byte(`"}"}"}`),
	{0x0a},
	{0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
	{0x12, 0x05, 0x0a},
	{0x08, 0x01},
	{0x9a, 0x01, 0x0b, 0x0a, 0x03, 'c', 'p', 'u', 0x12, 0x04, 0x0a, 0x02, 'x', 'y'},
	bytes.Repeat([]byte{0xff}, 64),
}

func FuzzDecode(f *testing.F) {
	for _, s := range []*v1.PodStatus{{}, fullStatus(), newStatus(v1.PodFailed, containers(terminated("app", 1)))} {
		b, err := Encode(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	for _, b := range malformed {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("error without ErrMalformed: %v", err)
			}
			return
		}
		// One round may drop unknown fields and fractions; then all is stable.
		once, err := Encode(s)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		again, err := Decode(once)
		if err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		twice, err := Encode(again)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("bytes differ after a round trip:\n%x\n%x", once, twice)
		}
		normalised := Normalise(new(v1.Pod), s)
		if !Equal(normalised, Normalise(new(v1.Pod), normalised)) {
			t.Fatal("normalising twice differs")
		}
	})
}
