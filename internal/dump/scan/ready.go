// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"

	"github.com/statusstore/statusstore/journal"
)

// Readiness is the status of a pod's Ready condition.
type Readiness uint8

// Unstated: the record has no status, or that has no Ready condition.
const (
	Unstated Readiness = iota
	NotReady
	Ready
)

// ready reads no more of the status than it must. The prefix is for its work,
// whatever it was used for before.
func (r *Record) ready(p *prefix) Readiness {
	if len(r.status) == 0 || string(r.ContentType) != string(journal.ContentTypeProtobuf) {
		return Unstated
	}
	data := r.status
	if r.compression == 1 {
		if p.begin(r.status) {
			if ready, found := p.ready(); found {
				return ready
			}
		}
		var err error
		if data, err = r.open(); err != nil {
			return Unstated
		}
	}
	return readyIn(data)
}

// readyIn looks through the fields of a PodStatus: 1 is the phase, 2 a condition,
// of which 1 is the type and 2 the status.
func readyIn(b []byte) Readiness {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 > 2 || tag&7 != 2 { // fields are in order
			return Unstated
		}
		field, rest, ok := lengthPrefixed(b[n:])
		if !ok {
			return Unstated
		}
		b = rest
		if tag>>3 != 2 {
			continue
		}
		if status, is := readyCondition(field); is {
			return readinessOf(status)
		}
	}
	return Unstated
}

func readinessOf(status []byte) Readiness {
	if string(status) == "True" {
		return Ready
	}
	return NotReady
}

// readyCondition returns the status of a condition that is of type Ready. The type
// comes first, so others are left at once.
func readyCondition(b []byte) (status []byte, is bool) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag&7 != 2 || tag>>3 > 2 {
			break
		}
		field, rest, ok := lengthPrefixed(b[n:])
		if !ok {
			break
		}
		if tag>>3 == 1 {
			if string(field) != "Ready" {
				return nil, false
			}
			is = true
		} else {
			status = field
		}
		b = rest
	}
	return status, is
}

func lengthPrefixed(b []byte) (field, rest []byte, ok bool) {
	length, n := binary.Uvarint(b)
	if n <= 0 || length > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(length)], b[n+int(length):], true
}

// Heads of the fields that are looked for, in front of a length.
const (
	phaseField     = 0x0a // of a status
	conditionField = 0x12
	typeField      = 0x0a // of a condition
	statusField    = 0x12
)

// ready is readyIn, of a status that is decompressed while it is read. found is
// false if that is not enough to tell.
func (p *prefix) ready() (ready Readiness, found bool) {
	at := 0
	for p.has(at + 2) {
		head, length := p.text[at], int(p.text[at+1])
		at += 2
		if length > 0x7f { // a varint's second byte
			if !p.has(at+1) || p.text[at] > 0x7f {
				return Unstated, false
			}
			length += int(p.text[at])<<7 - 0x80
			at++
		}
		switch head {
		case phaseField:
		case conditionField:
			if length < 2 || !p.has(at+2) || p.text[at] != typeField {
				return Unstated, false
			}
			if p.text[at+1] != byte(len("Ready")) {
				break
			}
			const enough = len("\x0a\x05Ready\x12\x04True")
			if length < enough || !p.has(at+enough) {
				return Unstated, false
			}
			switch c := p.text[at:][:enough]; {
			case string(c[2:7]) != "Ready":
			case c[7] != statusField || c[8] < 4:
				return Unstated, false
			default:
				if c[8] > 4 { // False or Unknown
					return NotReady, true
				}
				return readinessOf(c[9:]), true
			}
		default:
			return Unstated, head>>3 > 2 && head <= 0x7f // fields are in order
		}
		at += length
	}
	return Unstated, at == p.n && len(p.block) == 0
}
