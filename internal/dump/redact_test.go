// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
)

// planter makes text that must not come out. What is looked for is a core that no
// escaping changes.
type planter struct {
	t     *rapid.T
	cores []string
}

func (p *planter) text() string {
	core := rapid.StringMatching(`[a-z][a-z0-9]{13}`).Draw(p.t, "core")
	p.cores = append(p.cores, core)
	around := rapid.SampledFrom([]string{"%s", "Ready %s", "\x1b[2J%s\n", "<b>%s</b>", `"%s"`, "10.0.0.1/%s", "%s: OOMKilled"}).Draw(p.t, "around")
	return fmt.Sprintf(around, core)
}

// name is text as a pod's name may be.
func (p *planter) name() string {
	core := rapid.StringMatching(`[a-z][a-z0-9]{13}`).Draw(p.t, "core")
	p.cores = append(p.cores, core)
	return core
}

// fill plants text in every string below v, keys of maps too.
func (p *planter) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(p.text())
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		p.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), rapid.IntRange(1, 2).Draw(p.t, "length"), 2))
		for i := range v.Len() {
			p.fill(v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		p.fill(key)
		p.fill(value)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		switch v.Addr().Interface().(type) {
		case *metav1.Time:
			v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(1767225600, 0))))
			return
		case *resource.Quantity:
			v.Set(reflect.ValueOf(resource.MustParse("3")))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				p.fill(v.Field(i))
			}
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	}
}

// planted builds a journal with text of a planter's everywhere, and returns the
// pod it is about.
func (p *planter) planted(t *testing.T) (path, pod string) {
	path = filepath.Join(t.TempDir(), fmt.Sprint(len(p.cores)), journal.FileName)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(path, journal.Options{Node: p.name(), Software: p.text()})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	namespace, name, uid := p.name(), p.name(), types.UID(p.name())
	add := func(e journal.Event) {
		e.Namespace, e.Name, e.UID = namespace, name, uid
		if _, err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for _, phase := range []v1.PodPhase{"", v1.PodRunning, v1.PodFailed, v1.PodRunning} {
		s := &v1.PodStatus{}
		p.fill(reflect.ValueOf(s).Elem())
		if phase != "" {
			s.Phase = phase
			s.Conditions[0].Type, s.Conditions[0].Status = v1.PodReady, v1.ConditionFalse
		}
		raw, err := podstatus.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		add(journal.Event{Kind: journal.KindSet, Reason: journal.ReasonSet, ContentType: journal.ContentTypeProtobuf, Status: raw})
	}
	add(journal.Event{Kind: journal.KindRejected, Attributes: map[string]string{journal.AttrMessage: p.text(), journal.AttrContainer: p.text(), p.name(): p.text()}})
	j.PutAck(journal.Ack{UID: uid, LiveUID: types.UID(p.name()), Version: 2, Time: time.Now().UTC()})
	return path, namespace + "/" + name
}

// TestRedact_LeavesNothing: text that is planted in every field of a pod, its
// statuses and attributes comes out of no command in no format.
func TestRedact_LeavesNothing(t *testing.T) {
	checks, limit := 0, 12
	if raceDetector {
		limit = 3
	}
	rapid.Check(t, func(rt *rapid.T) {
		if checks++; checks > limit { // each looks at some hundred texts in thirty outputs
			return
		}
		p := &planter{t: rt}
		path, pod := p.planted(t)
		page := filepath.Join(filepath.Dir(path), "page.html")
		commands := [][]string{{"events", "-p", path}, {"events", "-p", "-o", "ndjson", path}, {"state", "--at", "3", "-o", "json", path}, {"state", "--at", "epoch:1", path},
			{"diff", path, "2", "4"}, {"diff", "-o", "yaml", path, "2", "4"}, {"why", path, pod}, {"why", "-o", "wide", path, pod}, {"why", "-o", "json", path, pod}, {"verify", path},
			{"verify", "-o", "json", path}, {"timeline", path}, {"timeline", "--out", page, path},
			{"export", path}, {"export", "--format", "otlp", path}, {"export", "--format", "events", path}}
		for _, form := range formats {
			for _, verb := range []string{"events", "state", "unsynced", "stats"} {
				commands = append(commands, []string{verb, "-o", form, path})
			}
		}
		for _, args := range commands {
			got := run(append(args, "--redact")...)
			if got.code != exitOK {
				t.Fatalf("%q: exit code %d: %s", args, got.code, got.err)
			}
			text := got.out + got.err
			if b, err := os.ReadFile(page); err == nil {
				text += string(b)
				os.Remove(page)
			}
			for _, core := range p.cores {
				if i := strings.Index(text, core); i >= 0 {
					t.Fatalf("%q --redact leaks %q: …%s", args, core, text[max(i-80, 0):min(i+40, len(text))])
				}
			}
		}
		plain := run("events", "-o", "ndjson", path) // the texts are there without it
		for _, core := range p.cores[3:20] {
			if !strings.Contains(plain.out, core) {
				t.Fatalf("%q was not planted", core)
			}
		}
	})
}

// TestRedact_Follows: the same text gets the same word, other text another.
func TestRedact_Follows(t *testing.T) {
	got := run("why", "--redact", night(t), "web-0")
	wantRun(t, got, exitOK)
	for _, want := range []string{"was first seen (uid uid-1)", "container name-1 restarted (restart 1); the run before ended with exit code 137 (OOMKilled)", "stopped being Ready after 17m30s: ContainersNotReady: message-1"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("lacks %q:\n%s", want, got.out)
		}
	}
	path := night(t)
	for _, verb := range []string{"verify", "stats"} {
		if got := run(verb, "--redact", "-o", "json", path); !strings.Contains(got.out, `"path":"journal.db"`) || strings.Contains(got.out, filepath.Dir(path)) {
			t.Errorf("%s: got %s", verb, got.out)
		}
	}
	pods := run("state", "--redact", "-o", "json", night(t))
	if !strings.Contains(pods.out, `"name":"pod-1"`) || !strings.Contains(pods.out, `"name":"pod-2"`) || strings.Contains(pods.out, "web-0") {
		t.Errorf("state: got %s", pods.out)
	}
}
