#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The journal in /var/lib/statusstore stays: what is pending in it is in no other place.
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now statusstore.service
fi
