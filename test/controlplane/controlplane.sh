#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the launcher, which takes a second when nothing changed, and hands it
# the arguments. "controlplane.sh help" shows them.
set -eu
src=$(cd "$(dirname "$0")" && pwd)
cache=${CONTROLPLANE_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/statusstore-controlplane}
mkdir -p "$cache"
# One launcher per checkout: two of them may differ.
launcher=$cache/launcher-$(printf %s "$src" | cksum | cut -d ' ' -f 1)
GOWORK=off GOFLAGS= CGO_ENABLED=0 go build -C "$src" -buildvcs=false -o "$launcher" ./cmd/controlplane
CONTROLPLANE_SRC=$src CONTROLPLANE_CACHE=$cache exec "$launcher" "$@"
