#!/usr/bin/env bash
# Makes the servers Dovecot and Radicale, and Nix, available for tests.
set -euo pipefail

usage() {
	cat <<USAGE
usage: scripts/servers.sh      install the servers that are missing
       scripts/servers.sh -h   this text

Tests of mail run against Dovecot 2.3 and aiosmtpd, those of calendars and
address books against Radicale 3. The tests start them on a free port, with data
in a temporary folder. The module for Nix is evaluated by nix-instantiate. This
script installs the packages dovecot-imapd, python3-aiosmtpd, python3-radicale
and nix-bin where it is root and has apt-get. Elsewhere it says what to do, and
the tests that need a missing one are skipped. It never fails.
USAGE
}

say() { printf 'servers.sh: %s\n' "$*" >&2; }

# missing prints the packages of the servers that are not installed.
missing() {
	command -v dovecot >/dev/null || [[ -x /usr/sbin/dovecot ]] || echo dovecot-imapd
	/usr/bin/python3 -c "import aiosmtpd" 2>/dev/null || echo python3-aiosmtpd
	/usr/bin/python3 -c "import radicale" 2>/dev/null || echo python3-radicale
	command -v nix-instantiate >/dev/null || echo nix-bin
}

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
	local packages
	mapfile -t packages < <(missing)
	if ((${#packages[@]} == 0)); then
		return
	fi
	if ((EUID != 0)) || ! command -v apt-get >/dev/null; then
		say "tests are skipped: install Dovecot 2.3 with IMAP, aiosmtpd, Radicale 3 and Nix (Debian and Ubuntu: apt-get install ${packages[*]})"
		return
	fi
	say "installing packages of the system: ${packages[*]}"
	# A package may start its service; the tests start their own.
	if ! { apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${packages[@]}"; } >&2; then
		say "tests are skipped: the packages could not be installed"
	fi
}

main "$@"
