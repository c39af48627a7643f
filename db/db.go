// Package db owns the schema: the goose migrations, embedded so that every
// binary carries the bytes it was tested with. The queries that sqlc compiles to
// Go are in db/queries.
package db

import "embed"

// Migrations holds the goose migrations under "migrations", and prepare.sql,
// which runs before them. Migrations only go forward, and a released one is
// never edited.
//
//go:embed migrations/*.sql prepare.sql
var Migrations embed.FS
