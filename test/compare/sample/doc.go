// SPDX-License-Identifier: Apache-2.0

// Package sample makes the pods and statuses that all sides are given: the same
// ones for the same arguments, so that a second store can be told the very same.
package sample
