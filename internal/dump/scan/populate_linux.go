// SPDX-License-Identifier: Apache-2.0

package scan

import "golang.org/x/sys/unix"

// populate reads a mapped range in. Kernels before 5.14 don't, and fault instead.
func populate(b []byte) { _ = unix.Madvise(b, unix.MADV_POPULATE_READ) }
