// SPDX-License-Identifier: Apache-2.0

package projection_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	v1 "k8s.io/api/core/v1"

	"github.com/statusstore/statusstore/journal"
	"github.com/statusstore/statusstore/podstatus"
	"github.com/statusstore/statusstore/projection"
)

// A journal's history, folded to what was true after its second status.
func ExampleAt() {
	dir, err := os.MkdirTemp("", "projection")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	j, err := journal.Open(filepath.Join(dir, journal.FileName), journal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()

	var sequences []journal.Sequence
	for _, phase := range []v1.PodPhase{v1.PodPending, v1.PodRunning, v1.PodSucceeded} {
		encoded, err := podstatus.Encode(&v1.PodStatus{Phase: phase})
		if err != nil {
			fmt.Println(err)
			return
		}
		stored, err := j.Append(context.Background(), journal.Event{
			Kind: journal.KindSet, UID: "uid-a", Namespace: "default", Name: "web-0", Reason: journal.ReasonSet,
			ContentType: journal.ContentTypeProtobuf, Status: encoded,
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		sequences = append(sequences, stored[0].Sequence)
	}

	state, err := projection.At(j.Events(1, 0), projection.Point{Sequence: sequences[1]})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range state.Entries() {
		fmt.Println(e.Namespace, e.Name, e.Version, e.Status.Phase)
	}
	// Output: default web-0 2 Running
}
