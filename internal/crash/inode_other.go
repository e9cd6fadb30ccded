// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package crash

import (
	"errors"
	"os"
)

// inodeOf takes the name for the file: without interception no file is renamed
// between two captures that are compared.
func inodeOf(path string) (Inode, error) {
	_, err := os.Lstat(path)
	return Inode(path), err
}

func inodeOfFD(int) (Inode, error) { return "", errors.ErrUnsupported }
