#!/usr/bin/env bash
# Makes the IMAP server Dovecot available for tests.
set -euo pipefail

usage() {
	cat <<USAGE
usage: scripts/dovecot.sh      install Dovecot's IMAP server if it is missing
       scripts/dovecot.sh -h   this text

Tests of mail run against Dovecot 2.3, which they start themselves, on a free
port, with mail in a temporary folder. This script installs the package
dovecot-imapd where it is root and has apt-get. Elsewhere it says what to do,
and the tests that need Dovecot are skipped. It never fails.
USAGE
}

say() { printf 'dovecot.sh: %s\n' "$*" >&2; }

installed() { command -v dovecot >/dev/null || [[ -x /usr/sbin/dovecot ]]; }

main() {
	case "$#:${1:-}" in
	0:) ;;
	1:-h | 1:--help | 1:help)
		usage
		return
		;;
	*)
		usage >&2
		return 2
		;;
	esac
	if installed; then
		return
	fi
	if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
		say "the tests against Dovecot are skipped: install Dovecot 2.3 with IMAP (Debian and Ubuntu: apt-get install dovecot-imapd)"
		return
	fi
	say "installing the system's package dovecot-imapd"
	# A package may start its service; the tests start their own.
	if ! { apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends dovecot-imapd; } >&2; then
		say "the tests against Dovecot are skipped: the package could not be installed"
	fi
}

main "$@"
