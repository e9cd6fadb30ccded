// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the rules of the code base as tests: which package may
// import which, how long a file may be, where a package is described, and what
// must not be in any file. It has no code of its own.
//
// A rule that stands in the way is changed here, with its reason, and not worked
// around. Packages that a rule names must exist, so the tables can't rot.
package archtest
