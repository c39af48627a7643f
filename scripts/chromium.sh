#!/usr/bin/env bash
# Makes the browser Chromium available for the tests of the operator's page.
set -euo pipefail

usage() {
	cat <<USAGE
usage: scripts/chromium.sh      install Chromium if it is missing
       scripts/chromium.sh -h   this text

The tests of the operator's page drive Chromium, in /usr/bin/chromium or where
the variable CHROMIUM says. This script installs the package chromium where it
is root and has apt-get. Elsewhere it says what to do, and the tests are
skipped. It never fails.
USAGE
}

say() { printf 'chromium.sh: %s\n' "$*" >&2; }

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
	if [[ -x ${CHROMIUM:-/usr/bin/chromium} ]]; then
		return
	fi
	if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
		say "the tests in a browser are skipped: install Chromium (Debian: apt-get install chromium), or name it in CHROMIUM"
		return
	fi
	say "installing the system's package chromium"
	if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium; } >&2; then
		say "the tests in a browser are skipped: the package could not be installed"
	fi
}

main "$@"
