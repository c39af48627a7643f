#!/usr/bin/env bash
# Draws the passwords and keys of a deployment with Compose, once.
set -euo pipefail

dir=${1:-"$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/secrets"}
if [ -e "$dir" ]; then
	echo "secrets.sh: $dir exists; the database knows its passwords, so that it is not drawn again" >&2
	exit 1
fi
# Only the owner enters the folder; containers are given single files, which
# their users have to read.
made=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$made"' EXIT
chmod 700 "$made"
umask 022

draw() { openssl rand -hex 24; }
key() { openssl rand -base64 32; }

draw >"$made/postgres"
cat >"$made/logins.sql" <<'SQL'
CREATE ROLE countersign_owner NOLOGIN;
CREATE ROLE countersign_api NOLOGIN;
CREATE ROLE countersign_worker NOLOGIN;
CREATE ROLE countersign_triage NOLOGIN;
SQL
login() { # NAME ROLES
	local password
	password=$(draw)
	echo "CREATE ROLE cs_$1 LOGIN PASSWORD '$password' IN ROLE $2;" >>"$made/logins.sql"
	echo "DATABASE_URL=postgres://cs_$1:$password@postgres:5432/countersign?sslmode=disable" >"$made/$1.env"
}
login migrate "countersign_owner, countersign_api, countersign_worker, countersign_triage"
login api countersign_api
login worker "countersign_worker, pg_monitor"
login triage countersign_triage
echo "ALTER DATABASE countersign OWNER TO cs_migrate;" >>"$made/logins.sql"

sources=$(key)
mail=$(key)
echo "COUNTERSIGN_SECRET_KEY=$sources" | tee -a "$made/api.env" >>"$made/worker.env"
echo "COUNTERSIGN_TRIAGE_KEY=$mail" | tee -a "$made/api.env" >>"$made/triage.env"
mv "$made" "$dir"
trap - EXIT
echo "$dir"
