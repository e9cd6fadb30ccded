// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package fakeapi

import (
	"errors"
	"io"
	"net"
)

// holdPort is only possible where a port can be bound without listening. Where
// it isn't, another process may take the port while the network is down.
func holdPort(net.Addr) (io.Closer, error) { return nil, errors.ErrUnsupported }
