// SPDX-License-Identifier: Apache-2.0

// Command controlplane builds kube-apiserver and etcd from Go modules and runs
// them for tests, on 127.0.0.1 and in a folder of their own. See README.md.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const usage = `usage: controlplane.sh COMMAND

  build                    build both programs if they are missing, print their folder
  start DIR [--port N] [--etcd-port N] [--authorization-mode M] [-- APISERVER_FLAGS]
                           start both, wait until ready, print the kubeconfig's path
  down DIR [--kill]        end the API server only: an outage begins
  up DIR                   start it again on the same port and data
  restart DIR [--kill] [--for 5s]
                           down, wait, up
  status DIR               print the state as JSON; exit status 1 unless ready
  stop DIR [--kill]        end exactly the two processes that were started

start, up and restart take --timeout (default 90s): how long to wait for readiness.
`

// errUsage ends the program with exit status 2 and the usage.
var errUsage = errors.New("wrong usage")

func main() {
	switch err := run(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "controlplane: %v\n%s", err, usage)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

// flags are those of all commands together; each command looks at its own.
type flags struct {
	port, etcdPort  int
	authorization   string
	timeout, outage time.Duration
	kill            bool
	extra           []string
}

func parse(command string, args []string) (flags, error) {
	var f flags
	fs := flag.NewFlagSet(command, flag.ContinueOnError)
	fs.Usage = func() {}
	switch command {
	case "start":
		fs.IntVar(&f.port, "port", 0, "")
		fs.IntVar(&f.etcdPort, "etcd-port", 0, "")
		fs.StringVar(&f.authorization, "authorization-mode", "RBAC", "")
		fs.DurationVar(&f.timeout, "timeout", 90*time.Second, "")
	case "up":
		fs.DurationVar(&f.timeout, "timeout", 90*time.Second, "")
	case "restart":
		fs.DurationVar(&f.timeout, "timeout", 90*time.Second, "")
		fs.DurationVar(&f.outage, "for", 0, "")
		fs.BoolVar(&f.kill, "kill", false, "")
	case "down", "stop":
		fs.BoolVar(&f.kill, "kill", false, "")
	case "status":
	default:
		return f, fmt.Errorf("%w: no command %q", errUsage, command)
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return f, err
	} else if err != nil {
		return f, fmt.Errorf("%w: %w", errUsage, err)
	}
	f.extra = fs.Args()
	if command != "start" && len(f.extra) > 0 {
		return f, fmt.Errorf("%w: %s takes no %q", errUsage, command, f.extra[0])
	}
	return f, nil
}

func run(args []string) error {
	switch {
	case len(args) == 1 && (args[0] == "-h" || args[0] == "--help" || args[0] == "help"):
		return flag.ErrHelp
	case len(args) == 1 && args[0] == "build":
		dir, err := build()
		if err == nil {
			fmt.Println(dir)
		}
		return err
	case len(args) < 2 || args[1] == "" || args[1][0] == '-':
		return fmt.Errorf("%w: a command and a folder are needed", errUsage)
	}
	command := args[0]
	f, err := parse(command, args[2:])
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(args[1])
	if err != nil {
		return err
	}
	p := &plane{dir: dir}
	if command == "status" {
		if err := p.load(); err != nil {
			return err
		}
		return p.print()
	}
	if command == "start" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.load(); err != nil && !(command == "start" && errors.Is(err, os.ErrNotExist)) {
		return err
	}
	switch command {
	case "start":
		return p.start(f)
	case "down":
		return p.down(f.kill)
	case "up":
		return p.up(f.timeout)
	case "restart":
		if err := p.down(f.kill); err != nil {
			return err
		}
		time.Sleep(f.outage)
		return p.up(f.timeout)
	default: // stop: parse let nothing else through
		return p.stop(f.kill)
	}
}
