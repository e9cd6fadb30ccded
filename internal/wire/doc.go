// SPDX-License-Identifier: Apache-2.0

// Package wire is the JSON form of events: a line of the agent's event stream is
// what journal-dump prints, field by field.
//
// Field names and their order are a contract with other programs. Values share
// no memory that changes: an Event may be kept.
package wire
