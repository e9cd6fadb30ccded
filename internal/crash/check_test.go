// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/statusstore/statusstore/journal"
)

// checkRequest asks whether the directory is one of the states.
type checkRequest struct {
	Dir     string
	Allowed []state
	Limit   int
	// Torn: a meta page may be invalid. Otherwise it must not be.
	Torn bool
	// Skips: versions may have been skipped already.
	Skips bool
}

type checkAnswer struct {
	Problem string // empty: the image is fine
	Found   int    // which of the states it is
	Suspect bool
}

// checkImage opens what a crash left as the next agent would, and goes on with it.
func checkImage(q checkRequest) (a checkAnswer) {
	fail := func(format string, args ...any) checkAnswer {
		a.Problem = fmt.Sprintf(format, args...)
		return a
	}
	main, err := look(q.Dir, journal.FileName)
	if err != nil {
		return fail("reading: %v", err)
	}
	second, err := look(q.Dir, copyName)
	if err != nil {
		return fail("reading the copy: %v", err)
	}
	a.Suspect = main.suspect
	if main.suspect && !q.Torn || second.suspect {
		return fail("a meta page is invalid, and none was torn")
	}
	if problems := append(main.problems, second.problems...); len(problems) > 0 {
		return fail("verify: %s", strings.Join(problems, "; "))
	}
	a.Found = slices.Index(q.Allowed, state{main.text, second.text})
	if a.Found < 0 {
		return fail("a state that never was:\n%s\nthe copy:\n%s", main.text, second.text)
	}
	if err := goOn(q, main); err != nil {
		return fail("going on: %v", err)
	}
	return a
}

func look(dir, name string) (description, error) {
	path := filepath.Join(dir, name)
	if _, err := os.Lstat(path); err != nil {
		return description{text: absent}, nil
	}
	return describe(path)
}

// goOn opens the journal for writing, compares again, and uses it.
func goOn(q checkRequest, before description) error {
	path := filepath.Join(q.Dir, journal.FileName)
	o := journal.Options{Node: "node", Retention: journal.Retention{MaxEvents: q.Limit}}
	j, err := journal.Open(path, o)
	if err != nil {
		return err
	}
	defer j.Close()
	got, err := pods(j)
	if err != nil {
		return err
	}
	if got != before.pods {
		return fmt.Errorf("opened for writing it has\n%s\nit had\n%s", got, before.pods)
	}
	if j.Info().Suspect != before.suspect {
		return fmt.Errorf("suspect: %v for writing, %v for reading", j.Info().Suspect, before.suspect)
	}
	if j.WasClean() != before.clean && before.text != absent {
		return fmt.Errorf("was clean: %v; the file was %s", j.WasClean(), closing(before.clean))
	}
	known := journal.Event{UID: "pod-new"}
	for e, err := range j.Newest() {
		if err != nil {
			return err
		}
		known = e
	}
	next := journal.Event{Kind: journal.KindSet, Reason: journal.ReasonSet, UID: known.UID, Namespace: "default", Name: "pod", Status: []byte("next")}
	appended, err := j.Append(context.Background(), next)
	if err != nil {
		return err
	}
	want := known.Version + 1
	if before.suspect {
		want++ // it may have been given away by a commit that is lost
	}
	if v := appended[0].Version; v < want || v > want && !q.Skips {
		return fmt.Errorf("%s got version %d after %d, want %d", known.UID, v, known.Version, want)
	}
	j.PutAck(journal.Ack{UID: next.UID, LiveUID: next.UID, Version: appended[0].Version})
	if err := j.Close(); err != nil {
		return err
	}
	after, err := describe(path)
	if err != nil {
		return err
	}
	if len(after.problems) > 0 || after.suspect {
		return fmt.Errorf("afterwards verify finds %q, suspect %v", after.problems, after.suspect)
	}
	if !strings.Contains(after.pods, fmt.Sprintf("ack %s %s %d ", next.UID, next.UID, appended[0].Version)) {
		return fmt.Errorf("the ack is not in\n%s", after.pods)
	}
	return leftovers(q.Dir)
}

// leftovers names files that nobody will remove. Those of a copy, in whatever
// directory that is, are the user's.
func leftovers(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == journal.FileName, name == journal.FileName+".initialised":
		case name == copyName, strings.HasPrefix(name, "."+copyName):
		default:
			return fmt.Errorf("%s is left behind", name)
		}
	}
	return nil
}
