#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
set -e
systemd-sysusers statusstore.conf
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# Restarted after an upgrade; never started before it was configured.
	systemctl try-restart statusstore.service
fi
