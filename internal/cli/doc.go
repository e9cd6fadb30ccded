// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of statusstore: one file per verb.
//
// Verbs that talk to a running agent go through [socket.Client]; run starts an
// agent in this process, demo one in a child process. Standard output carries
// results only; everything else goes to standard error, errors as one line that
// says what helps. Exit codes: 0 done, 1 failed, 2 wrong usage.
//
// Text from pods (names, messages) is escaped before it reaches a terminal.
package cli
