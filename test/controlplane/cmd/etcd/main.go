// SPDX-License-Identifier: Apache-2.0

// Command etcd is a plain etcd server, built from etcd's server module.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
