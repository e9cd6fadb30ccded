#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
set -e
systemd-sysusers statusstore.conf
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# Restarted after an upgrade; never started before it was configured. One that does
	# not start is no failure of the installation: systemd goes on trying.
	systemctl try-restart statusstore.service || echo "statusstore.service has not started yet: systemctl status statusstore.service" >&2
fi
