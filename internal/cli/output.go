// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/statusstore/statusstore/internal/cli/socket"
	"github.com/statusstore/statusstore/journal"
)

// changeRecord is what a write did to a pod, as -o json shows it.
type changeRecord struct {
	Namespace    string           `json:"namespace"`
	Name         string           `json:"name"`
	UID          types.UID        `json:"uid"`
	Version      journal.Version  `json:"version"`
	AckedVersion journal.Version  `json:"ackedVersion"`
	Sequence     journal.Sequence `json:"sequence"`
}

func newChangeRecord(name podName, uid types.UID, s socket.Stored) changeRecord {
	return changeRecord{
		Namespace: name.namespace, Name: name.name, UID: uid,
		Version: s.Version, AckedVersion: s.AckedVersion, Sequence: s.Sequence,
	}
}

// isRefusal says whether the agent answered, with a no.
func isRefusal(err error) bool {
	_, ok := errors.AsType[*apierrors.StatusError](err)
	return ok
}

func printJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	return write(w, escapeJSON(b.Bytes()))
}

// printRawJSON prints JSON text as the agent sent it, indented.
func printRawJSON(w io.Writer, text []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(text), "", "    "); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	b.WriteByte('\n')
	return write(w, escapeJSON(b.Bytes()))
}

func write(w io.Writer, data []byte) error {
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// table prints rows in columns. Cells are escaped. Rows printed after a flush line
// up with those before it as far as they fit.
type table struct {
	w      io.Writer
	rows   [][]string
	widths []int
}

func newTable(w io.Writer) *table { return &table{w: w} }

func (t *table) row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = escape(cell)
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i]))
	}
	t.rows = append(t.rows, row)
}

func (t *table) flush() error {
	const gap = 3
	var b strings.Builder
	for _, row := range t.rows {
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", t.widths[i]+gap-utf8.RuneCountInString(cell)))
			}
		}
		b.WriteByte('\n')
	}
	t.rows = nil
	return write(t.w, []byte(b.String()))
}
