// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The page is made of three files and the data. Everything that comes from a
// journal is inside the data, as JSON without < > and &, in an element that no
// browser runs; the script writes it into the page as text only. The policy lets
// the browser run this script, use this style, and load nothing.

//go:embed page
var pageFiles embed.FS

// pageData is the data of a page, compact: what is said twice is in Strings.
type pageData struct {
	Node    string     `json:"node"`
	From    int64      `json:"from"` // milliseconds since 1970
	To      int64      `json:"to"`
	Strings []string   `json:"strings"`
	Pods    []pagePod  `json:"pods"`
	Epochs  [][4]int64 `json:"epochs"` // epoch, time, time of the event before, flags
}

type pagePod struct {
	Name     int         `json:"n"` // NS/NAME
	UID      int         `json:"u"`
	Start    uint8       `json:"s"`
	Unsynced int64       `json:"w"` // milliseconds after From, -1: all is acknowledged
	Events   []pageEvent `json:"e"`
}

// pageEvent is sequence, version, milliseconds after From, state, flags, kind,
// reason, text, and changes as triples of strings, -1 for none.
type pageEvent [9]any

// flags of a pageEvent.
const (
	flagRestart = 1 << iota
	flagFinished
	flagRefused
	flagRemoved
)

// flags of an epoch: its start is later than the page, which ends before it.
const (
	epochUnclean = 1 << iota
	epochLater
)

func (s laneState) code() uint8 { return uint8(s.phase)*4 + uint8(s.ready) }

// strings numbers what is said.
type stringTable struct {
	all    []string
	places map[string]int
}

func (t *stringTable) place(s string) int {
	if i, ok := t.places[s]; ok {
		return i
	}
	i := len(t.all)
	t.all = append(t.all, s)
	t.places[s] = i
	return i
}

func (t *timeline) page() pageData {
	table := &stringTable{places: map[string]int{}}
	d := pageData{Node: t.node, From: t.from.UnixMilli(), To: t.to.UnixMilli(), Pods: []pagePod{}, Epochs: [][4]int64{}}
	for _, e := range t.epochs {
		row := [4]int64{int64(e.epoch), e.at.UnixMilli(), e.at.UnixMilli(), 0}
		if !e.before.IsZero() {
			row[2] = max(e.before.UnixMilli(), d.From)
		}
		if e.unclean {
			row[3] |= epochUnclean
		}
		if e.later {
			row[1] = d.To
			row[3] |= epochLater
		}
		d.Epochs = append(d.Epochs, row)
	}
	for _, l := range t.pods {
		p := pagePod{Name: table.place(escape(l.namespace + "/" + l.name)), UID: table.place(escape(string(l.uid))), Start: l.start.code(), Unsynced: -1, Events: []pageEvent{}}
		if !l.unsynced.IsZero() {
			p.Unsynced = max(l.unsynced.Sub(t.from).Milliseconds(), 0)
		}
		for i := range l.moments {
			p.Events = append(p.Events, l.moments[i].page(t.from, table))
		}
		d.Pods = append(d.Pods, p)
	}
	d.Strings = table.all
	return d
}

func (m *moment) page(from time.Time, table *stringTable) pageEvent {
	flags := 0
	for flag, set := range map[int]bool{flagRestart: m.restart, flagFinished: m.finished, flagRefused: m.kind == "rejected", flagRemoved: m.kind == "removed"} {
		if set {
			flags |= flag
		}
	}
	changes := make([]int, 0, 3*len(m.changes))
	text := func(v any) int {
		if v == nil {
			return -1
		}
		return table.place(value(v))
	}
	for _, c := range m.changes {
		changes = append(changes, table.place(escape(c.Path)), text(c.Old), text(c.New))
	}
	return pageEvent{m.sequence, m.version, m.at.Sub(from).Milliseconds(), m.state.code(), flags,
		table.place(escape(m.kind)), table.place(escape(m.reason)), table.place(escapeLines(m.text)), changes}
}

// write makes the page.
func (d pageData) write(w io.Writer) error {
	parts := map[string]string{}
	for _, name := range []string{"timeline.html", "timeline.css", "timeline.js"} {
		b, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			return fmt.Errorf("make page: %w", err)
		}
		parts[name] = string(b)
	}
	data, err := json.Marshal(d) // with < > & and the line separators escaped
	if err != nil {
		return fmt.Errorf("make page: %w", err)
	}
	frame, err := template.New("page").Parse(parts["timeline.html"])
	if err != nil {
		return fmt.Errorf("make page: %w", err)
	}
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	css, js := "\n"+parts["timeline.css"], "\n"+parts["timeline.js"]
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'", hash(js), hash(css))
	// The policy and the parts are ours; the data is made safe above.
	err = frame.Execute(w, map[string]any{
		"Policy": template.HTML(`<meta http-equiv="Content-Security-Policy" content="` + policy + `">`),
		"Style":  template.HTML("<style>" + css + "</style>"),
		"Script": template.HTML("<script>" + js + "</script>"),
		"Data":   template.HTML(`<script type="application/json" id="data">` + string(escapeJSON(data)) + "</script>"),
	})
	if err != nil {
		return fmt.Errorf("make page: %w", err)
	}
	return nil
}

// writePage writes to a file that must not exist, under another name until it is
// whole.
func (t *timeline) writePage(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".journal-dump-*.html") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}()
	if err := t.page().write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Link(f.Name(), path); err != nil { // unlike a rename, it replaces nothing
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// mustNotExist: what is there already may be the journal itself.
func mustNotExist(path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("write %s: %w; remove it first, or choose another name", path, fs.ErrExist)
	}
	return nil
}
