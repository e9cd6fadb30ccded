// SPDX-License-Identifier: Apache-2.0

// Package logkey names the attributes of log lines, spelled as in JSON output,
// so that a log can be searched with the words that everything else uses.
package logkey
