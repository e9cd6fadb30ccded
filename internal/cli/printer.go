// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// printer shows what get fetches, in the form of -o.
type printer struct {
	w              io.Writer
	output         string
	withNamespaces bool

	table *table
	// columns of the table; a watch sends them once. Nil until then.
	columns []metav1.TableColumnDefinition
	rows    int
}

func newPrinter(w io.Writer, output string, withNamespaces bool) *printer {
	return &printer{w: w, output: output, withNamespaces: withNamespaces, table: newTable(w)}
}

func (p *printer) isTable() bool { return p.output == "table" || p.output == "wide" }

// empty says whether a table has had no row.
func (p *printer) empty() bool { return p.isTable() && p.rows == 0 }

// accept is the content type to ask for: the agent makes the tables.
func (p *printer) accept() string {
	if p.isTable() {
		return "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	}
	return "application/json"
}

// print shows a pod, a list of pods or a table.
func (p *printer) print(data []byte) error {
	switch p.output {
	case "json":
		return printRawJSON(p.w, data)
	case "yaml":
		return printYAML(p.w, data)
	case "name":
		return p.printNames(data)
	default:
		return p.printTable(data)
	}
}

// printNext is print for another object of a watch.
func (p *printer) printNext(data []byte) error {
	if p.output == "yaml" {
		if err := write(p.w, []byte("---\n")); err != nil {
			return err
		}
	}
	return p.print(data)
}

func (p *printer) printNames(data []byte) error {
	var object struct {
		metav1.PartialObjectMetadata
		Items []metav1.PartialObjectMetadata `json:"items"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	items := object.Items
	if object.Kind == "Pod" {
		items = []metav1.PartialObjectMetadata{object.PartialObjectMetadata}
	}
	for _, item := range items {
		if err := write(p.w, []byte("pod/"+escape(item.Name)+"\n")); err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) printTable(data []byte) error {
	var t metav1.Table
	if err := json.Unmarshal(data, &t); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	if t.Kind != "Table" {
		return fmt.Errorf("the agent sent a %s in place of a Table", t.Kind)
	}
	withHeader := p.rows == 0 && len(t.Rows) > 0
	if len(t.ColumnDefinitions) > 0 {
		p.columns = t.ColumnDefinitions
	}
	if withHeader {
		p.table.row(p.header()...)
	}
	for _, row := range t.Rows {
		cells, err := p.cells(row)
		if err != nil {
			return err
		}
		p.table.row(cells...)
		p.rows++
	}
	return p.table.flush()
}

func (p *printer) header() []string {
	var names []string
	if p.withNamespaces {
		names = append(names, "NAMESPACE")
	}
	for _, c := range p.columns {
		if p.shows(c) {
			names = append(names, strings.ToUpper(c.Name))
		}
	}
	return names
}

func (p *printer) shows(c metav1.TableColumnDefinition) bool {
	return c.Priority == 0 || p.output == "wide"
}

func (p *printer) cells(row metav1.TableRow) ([]string, error) {
	var cells []string
	if p.withNamespaces {
		var object metav1.PartialObjectMetadata
		if err := json.Unmarshal(row.Object.Raw, &object); err != nil {
			return nil, fmt.Errorf("decode answer: %w", err)
		}
		cells = append(cells, object.Namespace)
	}
	for i, c := range p.columns {
		if i < len(row.Cells) && p.shows(c) {
			cells = append(cells, cellText(row.Cells[i]))
		}
	}
	return cells, nil
}

// cellText spells a cell. Numbers in JSON arrive as float64.
func cellText(cell any) string {
	switch v := cell.(type) {
	case nil:
		return "<none>"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}
