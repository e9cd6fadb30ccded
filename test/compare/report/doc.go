// SPDX-License-Identifier: Apache-2.0

// Package report collects what a run measured: tables of named values, and
// targets that are reached or not. It prints text for people and JSON for
// programs. Nothing in it measures.
package report
