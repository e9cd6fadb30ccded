// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package scan

import "golang.org/x/sys/unix"

// populate asks for a mapped range to be read ahead.
func populate(b []byte) { _ = unix.Madvise(b, unix.MADV_WILLNEED) }
