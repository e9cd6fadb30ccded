// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package journal

import (
	"io/fs"
	"os"
)

// hasHoles reports whether the file has fewer blocks than bytes.
func hasHoles(fs.FileInfo) bool { return false }

// allocate extends the file with real blocks. supported is false on systems
// that cannot.
func allocate(*os.File, int64, int64) (supported bool, err error) { return false, nil }
