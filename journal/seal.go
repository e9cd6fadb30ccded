// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// Every value in the file is a msgpack array whose last element is a CRC-32C,
// always as the five-byte uint32. It covers the key and all bytes of the value
// before it, so a value that ends up under another key does not pass.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	sealBytes  = 5
	codeUint32 = 0xce
)

var (
	errChecksum = errors.New("checksum does not match")
	errShape    = errors.New("not a sealed record")
)

// sealer builds one sealed value.
type sealer struct {
	buf bytes.Buffer
	enc *msgpack.Encoder
}

func newSealer() *sealer {
	s := &sealer{}
	s.enc = msgpack.NewEncoder(&s.buf)
	return s
}

// begin starts an array of n elements, the checksum not counted.
func (s *sealer) begin(n int) {
	s.buf.Reset()
	s.enc.EncodeArrayLen(n + 1) //nolint:errcheck // a bytes.Buffer does not fail
}

func (s *sealer) uint(v uint64)    { s.enc.EncodeUint(v) }     //nolint:errcheck
func (s *sealer) int(v int64)      { s.enc.EncodeInt(v) }      //nolint:errcheck
func (s *sealer) string(v string)  { s.enc.EncodeString(v) }   //nolint:errcheck
func (s *sealer) bytes(v []byte)   { s.enc.EncodeBytes(v) }    //nolint:errcheck
func (s *sealer) bool(v bool)      { s.enc.EncodeBool(v) }     //nolint:errcheck
func (s *sealer) array(n int)      { s.enc.EncodeArrayLen(n) } //nolint:errcheck
func (s *sealer) time(v time.Time) { s.int(unixNanos(v)) }
func (s *sealer) finish(key []byte) []byte {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, s.buf.Bytes())
	out := make([]byte, 0, s.buf.Len()+sealBytes)
	out = append(out, s.buf.Bytes()...)
	out = append(out, codeUint32)
	return binary.BigEndian.AppendUint32(out, sum)
}

// opener reads one sealed value, element by element. The first error stays.
type opener struct {
	dec *msgpack.Decoder
	src *bytes.Reader
	n   int // elements left, the checksum not counted
	err error
}

// unseal checks the checksum before anything is parsed.
func unseal(key, value []byte) (*opener, error) {
	body := len(value) - sealBytes
	if body < 1 || value[body] != codeUint32 {
		return nil, errShape
	}
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value[:body])
	if sum != binary.BigEndian.Uint32(value[body+1:]) {
		return nil, errChecksum
	}
	o := &opener{src: bytes.NewReader(value[:body])}
	o.dec = msgpack.NewDecoder(o.src)
	n, err := o.dec.DecodeArrayLen()
	if err != nil || n < 1 {
		return nil, errShape
	}
	o.n = n - 1
	return o, nil
}

func element[T any](o *opener, decode func() (T, error)) T {
	var zero T
	if o.err != nil {
		return zero
	}
	if o.n == 0 {
		o.err = errShape
		return zero
	}
	o.n--
	v, err := decode()
	if err != nil {
		o.err = fmt.Errorf("%w: %w", errShape, err)
		return zero
	}
	return v
}

func (o *opener) uint() uint64    { return element(o, o.dec.DecodeUint64) }
func (o *opener) int() int64      { return element(o, o.dec.DecodeInt64) }
func (o *opener) bool() bool      { return element(o, o.dec.DecodeBool) }
func (o *opener) time() time.Time { return timeFromNanos(o.int()) }
func (o *opener) array() int      { return element(o, o.dec.DecodeArrayLen) }

func (o *opener) string() string { return string(o.bytes()) }

// bytes checks the announced length against what is left before it allocates.
func (o *opener) bytes() []byte {
	return element(o, func() ([]byte, error) {
		n, err := o.dec.DecodeBytesLen()
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, nil
		}
		if n > o.src.Len() {
			return nil, errShape
		}
		b := make([]byte, n)
		if err := o.dec.ReadFull(b); err != nil {
			return nil, err
		}
		return b, nil
	})
}

// nested lets the elements of an inner array be read with the same methods.
func (o *opener) nested(n int) { o.n += n }

// end reports the first error. Elements that a newer release has appended are
// skipped: adding one at the end does not raise the format.
func (o *opener) end() error { return o.err }

// unixNanos keeps the zero time apart from 1970.
func unixNanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeFromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
