// SPDX-License-Identifier: Apache-2.0

package podstatus

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// Encode returns s as Kubernetes protobuf. Equal statuses give equal bytes: map
// keys are written in sorted order. Times lose everything below a second, and
// empty lists and maps become nil. A nil status is ErrNoStatus.
func Encode(s *v1.PodStatus) ([]byte, error) {
	if s == nil {
		return nil, fmt.Errorf("encode pod status: %w", ErrNoStatus)
	}
	b, err := s.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode pod status: %w", err)
	}
	return b, nil
}

// Decode reads what Encode wrote. The result holds no reference to b. Bytes that
// are not a status give an error with ErrMalformed in its chain; unknown fields,
// as a newer release may write them, are skipped. No bytes are an empty status.
func Decode(b []byte) (*v1.PodStatus, error) {
	s := new(v1.PodStatus)
	if err := s.Unmarshal(b); err != nil {
		return nil, fmt.Errorf("decode pod status of %d bytes: %w: %w", len(b), ErrMalformed, err)
	}
	return s, nil
}
