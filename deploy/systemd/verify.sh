#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the unit of this directory under a real systemd and checks what is promised
# of it: ready before active, hardened but able to write, an orderly stop, restarts
# after a kill, a hang and a wrong configuration, backups, upgrades of the package.
#
#   deploy/systemd/verify.sh [DIR | FILE.deb]
#
# DIR has the static programs (default: dist/, which "make release" fills); a Debian
# package (docs/operations.md: "Build a release") is installed, upgraded and removed.
#
# Needs root, systemd and systemd-nspawn (Debian: systemd, systemd-container), a /usr
# that has /bin and /lib in it, and a $TMPDIR that overlayfs can write to (not itself
# an overlay). The machine's own init need not be systemd. The container has its own
# /etc, /var, processes and loopback; the machine's /usr is below an overlay. It takes
# a minute. Exit status: 0 all holds, 1 something doesn't, 2 it can't run here.
set -Eeuo pipefail
umask 022
exec </dev/null
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
from=${1:-$here/../../dist}

cannot() { echo "verify.sh: $*" >&2; exit 2; }
[ $# -le 1 ] || cannot "usage: verify.sh [DIR | FILE.deb]"
[ "$(id -u)" = 0 ] || cannot "needs root"
command -v systemd-nspawn >/dev/null || cannot "needs systemd-nspawn (Debian: apt-get install systemd-container)"
[ -x /lib/systemd/systemd ] || cannot "needs systemd"
for dir in /bin /lib; do [ -L $dir ] || cannot "needs a /usr that has /bin and /lib in it"; done
case $from in
*.deb) [ -f "$from" ] || cannot "no $from" ;;
*) for name in statusstore journal-dump; do [ -x "$from/$name" ] || cannot "no $name in $from: make release"; done ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/statusstore-verify.XXXXXX")
root=$work/root conf=$root/etc/statusstore
files=/home/verify probe=/srv/probe # as the container sees them
nspawn='' init=''                   # pids of its supervisor and its init
# A control group of its own, in each hierarchy that a systemd uses.
mapfile -t cgroups < <(awk -v "dir=/${work##*/}" '$3 == "cgroup2" || $3 == "cgroup" && $4 ~ /name=systemd/ {print $2 dir}' /proc/self/mounts)

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	until "${@:2}" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}
gone() { ! kill -0 "$nspawn"; }
remove_cgroups() { find "${cgroups[@]}" -depth -type d -exec rmdir {} +; }
cleanup() {
	trap - EXIT ERR INT TERM
	set +e
	if [ -n "$nspawn" ]; then
		kill -TERM "$nspawn" 2>/dev/null
		wait_for 10 gone || { pkill -KILL -P "$nspawn"; wait_for 10 gone; } # its init, and with it all within
		wait "$nspawn" 2>/dev/null
		wait_for 5 remove_cgroups
	fi
	rm -rf --one-file-system "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
[ "$(stat --file-system --format %T "$work")" != overlayfs ] || cannot "$work is on an overlay: set TMPDIR"
[ ${#cgroups[@]} != 0 ] || cannot "needs control groups: neither cgroup2 nor name=systemd is mounted"

fail() {
	[ "$BASHPID" = $$ ] || exit 1 # a subshell: the shell that waits for it tells
	trap - ERR
	set +e
	echo "FAILED: $*" >&2
	if [ -n "$init" ]; then
		inside systemctl status statusstore.service --no-pager --full --lines 40 >&2
	else
		cat "$work/console" >&2
	fi
	exit 1
}
trap 'fail "lines $LINENO ${BASH_LINENO[*]}: $BASH_COMMAND"' ERR
ok() { echo "ok: $*"; }
# is GOT WANT WHAT
is() { [ "$1" = "$2" ] || fail "$3: got \"$1\", want \"$2\""; ok "$3: $1"; }
# soon COMMAND...: it holds within a minute.
soon() { wait_for 60 "$@" || fail "not within a minute: $*"; }

# inside COMMAND...: runs in the container, as root.
inside() { nsenter --target "$init" --mount --uts --ipc --net --pid --cgroup env -i PATH=/usr/sbin:/usr/bin LC_ALL=C.UTF-8 "$@"; }
# as USER COMMAND...: runs in the container as another user.
as() { inside setpriv --reuid "$1" --regid "$1" --clear-groups --no-new-privs "${@:2}"; }
unit() { inside systemctl show statusstore.service --property "$1" --value; }
unit_is() { [ "$(unit "$1")" = "$2" ]; }
# figure NAME: a number or word of "statusstore status".
figure() { inside statusstore status -o json | sed -n "s/^ *\"$1\": \"*\\([^\",]*\\).*/\\1/p"; }
stored() { inside statusstore get web -o json | grep -c 'from verify' >/dev/null; }
mark() { since=$(date +%s.%N); }
# logged PATTERN: since the mark, by the service or by systemd about it.
logged() { inside journalctl --unit statusstore.service --output cat --no-pager --since "@$since" | grep -c -e "$1" >/dev/null; }
# drop_in LINE: a setting of [Service] on top of the unit, until the next.
drop_in() {
	printf '[Service]\n%s\n' "$1" >"$root/etc/systemd/system/statusstore.service.d/verify.conf"
	inside systemctl daemon-reload
}
# remember what restarted and started_again compare with.
remember() { epoch=$(figure epoch) restarts=$(unit NRestarts) pid=$(unit MainPID); }
# restarted UNCLEAN: the agent serves what was stored, one epoch later.
restarted() {
	is "$(figure epoch)" $((epoch + 1)) "epoch, one higher"
	is "$(figure uncleanStart)" "$1" "the run before was not closed"
	stored || fail "the status that was stored is gone"
}
# started_again UNCLEAN: the same, and systemd did it by itself.
started_again() {
	soon unit_is NRestarts $((restarts + 1))
	soon unit_is ActiveState active
	restarted "$1"
}

mkdir -p "$root"/{etc/systemd/system/statusstore.service.d,var/lib/dpkg/{info,updates,triggers},var/backups,proc,sys,dev,run,tmp,srv,"${files#/}"} "$conf" "$work/usr"
for dir in bin sbin lib lib32 lib64; do [ ! -L "/$dir" ] || ln -s "usr/$dir" "$root/$dir"; done
echo root:x:0:0:root:/root:/bin/sh >"$root/etc/passwd"
echo root:x:0: >"$root/etc/group"
tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
cp /etc/os-release /etc/ld.so.cache "$root/etc/"

# configure writes what an administrator does, for an API server that is away.
configure() {
	cat >"$conf/config.yaml" <<-'YAML'
		version: 1
		dataDir: /var/lib/statusstore
		socket: /run/statusstore/statusstore.sock
		node: my-node
		kubeconfig: /etc/statusstore/kubeconfig
		drainTimeout: 100ms
		allowUsers: [my-agent]
		readOnlyUsers: [my-reader]
	YAML
	cat >"$conf/kubeconfig" <<-'YAML'
		apiVersion: v1
		kind: Config
		clusters: [{name: away, cluster: {server: "http://127.0.0.1:1"}}]
		contexts: [{name: away, context: {cluster: away}}]
		current-context: away
	YAML
}
cat >"$root$files/pod.yaml" <<-'YAML'
	apiVersion: v1
	kind: Pod
	metadata: {name: web, namespace: default, uid: 11111111-2222-3333-4444-555555555555}
	spec:
	  containers: [{name: app, image: app}]
	status:
	  phase: Running
	  message: from verify
	  containerStatuses:
	  - {name: app, image: app, imageID: app, containerID: "containerd://1", ready: false, restartCount: 0, state: {running: {startedAt: "2026-03-01T12:00:00Z"}}}
YAML
# probe can|cannot COMMAND...: each of them works, or none does.
cat >"$root$probe" <<-'SH'
	want=$1
	shift
	for try; do
		if $try 2>/dev/null; then got=can; else got=cannot; fi
		[ $got = "$want" ] || { echo "$got: $try"; exit 1; }
	done
SH

echo "--- a system with the service"
case $from in
*.deb) cp "$from" "$root$files/statusstore.deb" ;;
*)
	install -D -t "$work/usr/bin" "$from/statusstore" "$from/journal-dump"
	install -D -m 0644 -t "$work/usr/lib/systemd/system" "$here/statusstore.service"
	install -D -m 0644 "$here/statusstore.sysusers.conf" "$work/usr/lib/sysusers.d/statusstore.conf"
	;;
esac
mkdir -p "${cgroups[@]}"
(
	for dir in "${cgroups[@]}"; do echo "$BASHPID" >"$dir/cgroup.procs"; done
	exec setpriv --pdeathsig TERM systemd-nspawn --boot --directory="$root" --overlay="/usr:$work/usr:/usr" --private-network \
		--register=no --keep-unit --settings=no --resolv-conf=off --timezone=off --link-journal=no --console=pipe \
		--machine="statusstore-verify-$$" -- --unit=multi-user.target
) >"$work/console" 2>&1 &
nspawn=$!
# own NAMESPACE: the container has one.
own() { ! [ "/proc/$init/ns/$1" -ef "/proc/self/ns/$1" ]; }
booted() { init=$(pgrep -P "$nspawn" -x systemd) && own pid && own mnt && inside systemctl is-active multi-user.target; }
settled() { booted || gone; }
if ! wait_for 60 settled || gone 2>/dev/null; then
	init=''
	fail "the container did not boot"
fi
is "$(inside cat /proc/1/comm)" systemd "process 1, of $(inside systemctl --version | head -n 1)"
inside systemd-sysusers --inline 'u my-agent 4001' 'u my-reader 4002' 'u stranger 4003' 2>/dev/null
case $from in
*.deb)
	dpkg --status systemd >"$root/var/lib/dpkg/status"
	install_package() { inside dpkg --install $files/statusstore.deb >"$work/dpkg" 2>&1 || fail "dpkg --install: $(<"$work/dpkg")"; }
	install_package
	is "$(unit ActiveState)/$(unit UnitFileState)" inactive/disabled "after the first installation"
	;;
*) inside systemd-sysusers statusstore.conf 2>/dev/null ;;
esac
configure

echo "--- a start"
mark
drop_in UnsetEnvironment=NOTIFY_SOCKET
inside systemctl start --no-block statusstore.service
soon inside statusstore status
is "$(unit ActiveState)" activating "serving, without telling that it is ready"
drop_in ''
inside systemctl stop statusstore.service
inside systemctl enable --now statusstore.service 2>/dev/null
inside statusstore status >/dev/null || fail "systemctl start returned before the socket answers"
is "$(unit ActiveState)/$(unit UnitFileState)" active/enabled "after systemctl enable --now, which the API server's absence does not hold up"
is "$(unit StatusText)" "serving on /run/statusstore/statusstore.sock" "status text"
inside statusstore set -f $files/pod.yaml >/dev/null
stored || fail "what was set is not there"
is "$(figure pending)" 1 "stored and pending, as the API server is away"

echo "--- hardened"
remember
is "$(inside stat -c %U "/proc/$pid")" statusstore "user"
is "$(inside grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' "/proc/$pid/status" | tr -s '\t\n' ' ')" \
	"CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 " "rights"
elsewhere=("touch /etc/written" "touch /usr/written" "touch /var/backups/written" "test -e $files/pod.yaml" "test -e /dev/verify")
syscalls=("unshare --user true" "chrt --batch 0 true" "test -e /proc/1")
inside touch /dev/verify
inside sh $probe can "${elsewhere[@]}" "${syscalls[@]}"
inside nsenter --target "$pid" --mount sh $probe cannot "${elsewhere[@]}" # as root
inside nsenter --target "$pid" --mount sh $probe can "touch /var/lib/statusstore/written" "rm /var/lib/statusstore/written"
drop_in "ExecStartPre=sh $probe cannot $(printf '"%s" ' "${syscalls[@]}")"
inside systemctl restart statusstore.service
restarted false
drop_in ''
ok "only its own directories can be written, others' files, processes, devices and namespaces are out of reach"
is "$(inside stat -c '%a %U:%G' /var/lib/statusstore /var/lib/statusstore/journal.db /run/statusstore | tr '\n' ' ')" \
	"700 statusstore:statusstore 600 statusstore:statusstore 755 statusstore:statusstore " "data directory, journal, directory of the socket"
is "$(inside stat -c '%a %F' /run/statusstore/statusstore.sock)" "666 socket" "socket, with lists of users"
as my-agent statusstore readiness web app true >/dev/null
as my-reader statusstore get web >/dev/null
! as my-reader statusstore readiness web app false >/dev/null 2>&1 || fail "a user of readOnlyUsers could write"
! as stranger statusstore get web >/dev/null 2>&1 || fail "a stranger was let in"
ok "a user of allowUsers may write, one of readOnlyUsers read, others are refused"

echo "--- stop and start"
remember
mark
inside systemctl stop statusstore.service
is "$(unit ActiveState)/$(unit Result)/$(unit ExecMainStatus)" inactive/success/0 "after systemctl stop"
soon logged msg=stopped
inside journal-dump verify /var/lib/statusstore >/dev/null
inside systemctl start statusstore.service
restarted false

echo "--- kill -9"
remember
inside kill -KILL "$pid"
started_again true

echo "--- a hang"
is "$(unit WatchdogUSec)" 1min "watchdog's time"
drop_in WatchdogSec=3
inside systemctl restart statusstore.service
remember
mark
inside sleep 8
is "$(unit MainPID)" "$pid" "process, after more than twice the watchdog's time, now 3 s"
inside kill -STOP "$pid"
started_again true
soon logged 'Watchdog timeout'
soon logged '^goroutine '
drop_in ''
inside systemctl restart statusstore.service

echo "--- reload"
remember
! inside systemctl reload statusstore.service 2>/dev/null || fail "systemctl reload did something"
is "$(unit MainPID)" "$pid" "process, after a reload, which is refused"
inside systemctl reload-or-restart statusstore.service
restarted false
remember
inside systemctl kill --signal HUP --kill-who main statusstore.service
started_again false
ok "SIGHUP ends it in an orderly way, and it is started again"

echo "--- a configuration that is wrong, and right again"
inside systemctl stop statusstore.service
mark
echo 'noSuchKey: 1' >>"$conf/config.yaml"
for _ in {1..7}; do # more often than systemd lets pass by itself
	! inside systemctl restart statusstore.service 2>/dev/null || fail "it started"
done
soon logged noSuchKey
configure
soon unit_is ActiveState active
stored
ok "it started by itself when the file was right, after seven failures"

echo "--- backup and restore"
inside statusstore snapshot /var/backups/statusstore.db >/dev/null
as my-agent statusstore readiness web app false >/dev/null
inside systemctl stop statusstore.service
inside mv /var/lib/statusstore/journal.db /var/lib/statusstore/journal.db.old
inside cp /var/backups/statusstore.db /var/lib/statusstore/journal.db
inside chown --reference /var/lib/statusstore /var/lib/statusstore/journal.db
inside systemctl start statusstore.service
stored
[ "$(figure epoch)" -gt 1048576 ] || fail "the copy was not noticed"
ok "the restored copy is served"

case $from in *.deb)
	echo "--- upgrade and removal of the package"
	remember
	install_package
	restarted false
	grep -q kubeconfig "$conf/config.yaml" || fail "the upgrade replaced the configuration"
	echo 'noSuchKey: 1' >>"$conf/config.yaml"
	install_package
	ok "upgraded, with a configuration that keeps it from starting, too"
	configure
	soon unit_is ActiveState active
	inside dpkg --remove statusstore >"$work/dpkg" 2>&1 || fail "dpkg --remove: $(<"$work/dpkg")"
	is "$(unit ActiveState)" inactive "after dpkg --remove"
	[ -f "$root/var/lib/statusstore/journal.db" ] || fail "the journal went with the package"
	ok "the journal stays"
	;;
esac
echo "all holds"
