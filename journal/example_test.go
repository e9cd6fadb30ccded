// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/statusstore/statusstore/journal"
)

// Append an event, close, open again, and tail.
func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, journal.FileName)

	j, err := journal.Open(path, journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	stored, err := j.Append(context.Background(), journal.Event{
		Kind: journal.KindSet, Reason: journal.ReasonSet,
		UID: "uid-a", Namespace: "default", Name: "web-0", Status: []byte("any bytes"),
	})
	if err != nil {
		log.Fatal(err) // nothing was stored
	}
	fmt.Println("durable as sequence", stored[0].Sequence, "version", stored[0].Version)
	if err := j.Close(); err != nil {
		log.Fatal(err)
	}

	j, err = journal.Open(path, journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer j.Close()
	for e, err := range j.Events(1, 0) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Sequence, e.Epoch, e.Kind)
	}
	// Output:
	// durable as sequence 2 version 1
	// 1 1 opened
	// 2 1 set
	// 3 2 opened
}
