// SPDX-License-Identifier: Apache-2.0

package syncer

import (
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// patchBody is a patch of a pod's status.
type patchBody struct {
	Metadata struct {
		UID types.UID `json:"uid"`
	} `json:"metadata"`
	Status json.RawMessage `json:"status"`
}

// repeats reports whether the server's answer to a patch lacks nothing but what was
// in the patch, so that sending it again would change nothing.
func repeats(answer *v1.Pod, status *v1.PodStatus, sent []byte) bool {
	again, err := statusPatch(answer, status)
	if err != nil || again == nil {
		return false
	}
	var lacks, had any
	return json.Unmarshal(again, &lacks) == nil && json.Unmarshal(sent, &had) == nil && within(lacks, had)
}

// within reports whether all that a JSON value says is said by another, too.
func within(part, whole any) bool {
	switch part := part.(type) {
	case map[string]any:
		whole, ok := whole.(map[string]any)
		for k, v := range part {
			if w, has := whole[k]; !ok || !has || !within(v, w) {
				return false
			}
		}
		return ok
	case []any:
		whole, ok := whole.([]any)
		for _, v := range part {
			if !slices.ContainsFunc(whole, func(w any) bool { return within(v, w) }) {
				return false
			}
		}
		return ok
	default:
		return part == whole
	}
}

// statusPatch returns the strategic merge patch that turns the status of live
// into status, or nil if there is nothing to change. It carries the UID, so the
// server refuses it for another pod of the name, and no resourceVersion, so that
// a change of labels meanwhile doesn't matter.
func statusPatch(live *v1.Pod, status *v1.PodStatus) ([]byte, error) {
	before, err := json.Marshal(&live.Status)
	if err != nil {
		return nil, fmt.Errorf("encode live status: %w", err)
	}
	after, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	difference, err := strategicpatch.CreateTwoWayMergePatch(before, after, v1.PodStatus{})
	if err != nil {
		return nil, fmt.Errorf("compute patch: %w", err)
	}
	if string(difference) == "{}" {
		return nil, nil
	}
	body := patchBody{Status: difference}
	body.Metadata.UID = live.UID
	patch, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	return patch, nil
}
