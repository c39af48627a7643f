#!/bin/sh
# Makes the logins of the programs, when PostgreSQL's image makes the database.
set -eu
psql -v ON_ERROR_STOP=1 --username postgres --dbname countersign --file /run/secrets/logins
