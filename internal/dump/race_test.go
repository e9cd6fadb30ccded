// SPDX-License-Identifier: Apache-2.0

//go:build race

package dump

// raceDetector: everything takes several times as long, and as much.
const raceDetector = true
