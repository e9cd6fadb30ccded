// SPDX-License-Identifier: Apache-2.0

// Package timeline tests what journal-dump writes for other programs with those
// programs: its timeline page in a real headless Chromium, and its OpenTelemetry
// logs with OTLP's own types. It is a module of its own so that neither is among
// the dependencies of the main one.
//
// The page's tests are skipped, with a message, where no Chromium is found: a
// program named chromium, chromium-browser, google-chrome or headless-shell, or
// the one that STATUSSTORE_CHROMIUM names.
package timeline
