#!/usr/bin/env bash
# Copies and restores a database under load in every way that docs/operations.md names,
# starts a worker on each copy, and fails if it sends anything.
set -euo pipefail
umask 022

usage() {
	cat <<USAGE
usage: scripts/drill.sh        drill with the programs in bin/ (make build)
       scripts/drill.sh -h     this text

It needs PostgreSQL's client programs (pg_dump, pg_basebackup, psql) beside initdb:
\$COUNTERSIGN_PG_BIN, else the newest of /usr/lib/postgresql. \$DRILL_NEW_BIN has those
of the server that a dump is moved to; by default the same.

Example:
  DRILL_NEW_BIN=\$(scripts/postgres.sh 18 .cache/postgres18) scripts/drill.sh
USAGE
}
[[ ${1:-} == -h ]] && { usage; exit 0; }

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${COUNTERSIGN_PG_BIN:-$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)}
new=${DRILL_NEW_BIN:-$bin}
dir=$(mktemp -d /tmp/countersign-drill.XXXXXX)
port=$((20000 + RANDOM % 20000))
failed=0 pids=() servers=()

if [[ $(id -u) == 0 ]]; then
	chown postgres "$dir"
	as() { runuser -u postgres -- "$@"; }
else
	as() { "$@"; }
fi
cleanup() {
	for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
	for s in "${servers[@]}"; do as "${s%%:*}/pg_ctl" -D "${s#*:}" -m immediate stop >/dev/null 2>&1 || true; done
	rm -rf "$dir"
}
trap cleanup EXIT

url() { echo "postgres://postgres@127.0.0.1:$1/${2:-app}?sslmode=disable"; }
sql() { psql -X -qAt -v ON_ERROR_STOP=1 "$(url "$1" "${2:-app}")" -c "SET search_path = countersign_data" -c "$3"; }
server() { # BIN FOLDER PORT: starts a server
	as "$1/pg_ctl" -D "$2" -o "-p $3 -k $dir -c listen_addresses=127.0.0.1" -l "$2.log" -w start >/dev/null || { tail "$2.log"; exit 1; }
	servers+=("$1:$2")
}
cluster() { # BIN FOLDER PORT: makes a cluster
	as "$1/initdb" -D "$2" -A trust -U postgres >/dev/null 2>&1
	server "$1" "$2" "$3"
}
worker() { # URL STATEFILE: starts a worker; its id is in $!
	DATABASE_URL=$1 COUNTERSIGN_STATE_FILE=$2 COUNTERSIGN_LEASE=5s COUNTERSIGN_LOG_LEVEL=error "$root/bin/worker" >>"$dir/worker.log" 2>&1 &
	pids+=($!)
}
stop() { kill "$1" && wait "$1" || true; }
until_is() { # PORT DATABASE QUERY WANT
	for ((n = 0; n < 300; n++)); do
		[[ $(sql "$1" "$2" "$3" 2>/dev/null || true) == "$4" ]] && return
		read -rt 0.1 <> <(:) || true
	done
	echo "not within 30 s: $3 = $4 (is $(sql "$1" "$2" "$3" 2>&1)); the worker's log:"; tail -3 "$dir/worker.log"; return 1
}
propose() { # PORT N: puts actions of class once on the schedule, due at once
	sql "$1" app "WITH a AS (
		INSERT INTO actions (tenant_id, action_id, content_digest, source_id, tool_name, args, risk, effect, decision_id, config_version, tool_digest, approval_state, bucket_id, max_attempts)
		SELECT t.tenant_id, gen_random_uuid(), '', 'box', 'countersign.noop', '{}', 'low', 'once', t.tenant_id, t.config_version, '', 'auto', b.bucket_id, 3
		FROM tenants t JOIN buckets b ON b.tenant_id = t.tenant_id AND b.name = 'default', generate_series(1, $2) RETURNING *)
		INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, max_attempts) SELECT tenant_id, action_id, bucket_id, now(), 3 FROM a"
}
sent() { sql "$1" "${2:-app}" "SELECT count(1) FROM tool_executions WHERE status = 'sent'"; }
due() { sql "$1" "${2:-app}" "SELECT count(1) FROM outbox"; }

held() { # NAME PORT DATABASE REASON STATEFILE: a worker on the copy sends nothing
	local before now waiting
	before=$(sent "$2" "$3") waiting=$(due "$2" "$3")
	worker "$(url "$2" "$3")" "$5"
	local id=$!
	if until_is "$2" "$3" "SELECT reason FROM fence" "$4" && now=$(sent "$2" "$3") && [[ $now == "$before" && $(due "$2" "$3") == "$waiting" ]]; then
		printf 'holds   %-42s %s; %s actions wait, 0 were sent\n' "$1" "$4" "$waiting"
	else
		printf 'BROKEN  %-42s %s were sent\n' "$1" "$((${now:-0} - before))"
		failed=1
	fi
	stop "$id"
}

cluster "$bin" "$dir/a" "$port"
as tee -a "$dir/a/postgresql.conf" >/dev/null <<X
archive_mode=on
archive_command='cp %p $dir/arch/%f'
X
as mkdir "$dir/arch"
as "$bin/pg_ctl" -D "$dir/a" -o "-p $port -k $dir -c listen_addresses=127.0.0.1" -l "$dir/a.log" -w restart >/dev/null
sql "$port" postgres "CREATE DATABASE app"
DATABASE_URL=$(url "$port") "$root/bin/countersign" migrate >/dev/null
sql "$port" app "INSERT INTO tenants (tenant_id, name) VALUES (gen_random_uuid(), 'drill');
	INSERT INTO sources (tenant_id, source_id, kind) SELECT tenant_id, 'box', 'builtin' FROM tenants;
	INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace) SELECT tenant_id, tenant_id, 'allow', 'drill', '[]' FROM tenants"
worker "$(url "$port")" "$dir/state"
first=$!
until_is "$port" app "SELECT state FROM fence" open
propose "$port" 20
until_is "$port" app "SELECT count(1) FROM tool_executions WHERE status = 'sent'" 20

# While 30 actions wait, every copy is made; then the original sends them.
stop "$first"
propose "$port" 30
as "$bin/pg_basebackup" -h "$dir" -p "$port" -U postgres -D "$dir/backup" -X stream -c fast
as cp -a "$dir/backup" "$dir/point"
as "$bin/pg_dumpall" -h "$dir" -p "$port" -U postgres -g >"$dir/roles.sql"
as "$bin/pg_dump" -h "$dir" -p "$port" -U postgres app >"$dir/app.sql"
moment=$(sql "$port" app "SELECT clock_timestamp()")
worker "$(url "$port")" "$dir/state"
second=$!
until_is "$port" app "SELECT count(1) FROM tool_executions WHERE status = 'sent'" 50
stop "$second"
sql "$port" app "SELECT pg_switch_wal()" >/dev/null
until_is "$port" app "SELECT last_archived_wal IS NOT NULL FROM pg_stat_archiver" t

sql "$port" postgres "CREATE DATABASE same"
psql -X -q "$(url "$port" same)" -f "$dir/app.sql" >/dev/null
held "dump restored into the same cluster" "$port" same copy ""
sql "$port" postgres "CREATE DATABASE template_copy TEMPLATE app"
held "template of the original" "$port" template_copy copy ""

cluster "$bin" "$dir/b" $((port + 1))
psql -X -q "$(url $((port + 1)) postgres)" -f "$dir/roles.sql" >/dev/null 2>&1
sql $((port + 1)) postgres "CREATE DATABASE app"
psql -X -q "$(url $((port + 1)))" -f "$dir/app.sql" >/dev/null
held "dump restored into another cluster" $((port + 1)) app copy ""

sed -i "s/^archive_mode=on/archive_mode=off/" "$dir/backup/postgresql.conf" "$dir/point/postgresql.conf"
cp "$dir/state" "$dir/state.backup"
server "$bin" "$dir/backup" $((port + 2))
held "base backup started as a copy, state file" $((port + 2)) app set_back "$dir/state.backup"

as tee -a "$dir/point/postgresql.conf" >/dev/null <<X
restore_command='cp $dir/arch/%f %p'
recovery_target_time='$moment'
recovery_target_action='promote'
X
as touch "$dir/point/recovery.signal"
server "$bin" "$dir/point" $((port + 3))
until_is $((port + 3)) app "SELECT pg_is_in_recovery()" f
held "point in time, no state file" $((port + 3)) app timeline ""

DATABASE_URL=$(url $((port + 3))) "$root/bin/countersign" recover --database --apply --by drill
unknown=$(sql $((port + 3)) app "SELECT count(1) FROM dead_letters WHERE reason = 'unknown'")
[[ $unknown == 30 && $(due $((port + 3))) == 0 ]] || { echo "BROKEN  $unknown of 30 are unknown after the recovery"; failed=1; }

# A planned move, which nothing is lost by.
propose "$port" 10
DATABASE_URL=$(url "$port") "$root/bin/countersign" recover --hold --by drill
# The new server may be built without the compression that the old one has.
as "$bin/pg_dump" -h "$dir" -p "$port" -U postgres --no-toast-compression app >"$dir/moved.sql"
cluster "$new" "$dir/c" $((port + 4))
psql -X -q "$(url $((port + 4)) postgres)" -f "$dir/roles.sql" >/dev/null 2>&1
sql $((port + 4)) postgres "CREATE DATABASE app"
psql -X -q -v ON_ERROR_STOP=1 "$(url $((port + 4)))" -f "$dir/moved.sql" >/dev/null
held "held for a move, at the new place" $((port + 4)) app moved ""
DATABASE_URL=$(url $((port + 4))) "$root/bin/countersign" recover --moved --apply --by drill
worker "$(url $((port + 4)))" ""
moved=$!
until_is $((port + 4)) app "SELECT count(1) FROM tool_executions WHERE status = 'sent'" 60 || failed=1
stop "$moved"
held "held for a move, at the old place" "$port" app moved ""
exit $failed
