package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/countersign-dev/countersign/db"
)

// RiverSchema is where River's own tables live.
const RiverSchema = "river"

// Migrated is the result of Migrate.
type Migrated struct {
	// From and To are the schema's versions before and after.
	From, To int64
	// River is the version of River's tables after.
	River int
}

// Migrate brings the database to this binary's schema: the roles, Countersign's
// tables and River's. Several processes may run it at once; one waits for the
// other. The URL's user must be allowed to create roles and schemas.
func Migrate(ctx context.Context, url string) (Migrated, error) {
	var m Migrated
	sqldb, err := sql.Open("pgx", url)
	if err != nil {
		return m, fmt.Errorf("open database: %w", err)
	}
	defer func() { _ = sqldb.Close() }()
	files, err := fs.Sub(db.Migrations, "migrations")
	if err != nil {
		return m, fmt.Errorf("embedded migrations: %w", err)
	}
	// Asked for every second, for five minutes.
	turns, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return m, fmt.Errorf("migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, sqldb, files, goose.WithSessionLocker(turns))
	if err != nil {
		return m, fmt.Errorf("read migrations: %w", err)
	}
	if m.From, err = provider.GetDBVersion(ctx); err != nil {
		return m, fmt.Errorf("read schema version: %w", err)
	}
	if err := checkNotNewer(m.From); err != nil {
		return m, err
	}
	if _, err := provider.Up(ctx); err != nil {
		return m, fmt.Errorf("migrate: %w", err)
	}
	if m.To, err = provider.GetDBVersion(ctx); err != nil {
		return m, fmt.Errorf("read schema version: %w", err)
	}
	// Readiness compares the schema's version with the binary's.
	if _, err := sqldb.ExecContext(ctx, "GRANT SELECT ON goose_db_version TO countersign_api, countersign_worker, countersign_triage"); err != nil {
		return m, fmt.Errorf("grant schema version: %w", err)
	}
	m.River, err = migrateRiver(ctx, url)
	return m, err
}

// checkNotNewer returns an error if a database's schema is of a later version
// than this program.
func checkNotNewer(version int64) error {
	latest, err := LatestSchema()
	if err != nil {
		return err
	}
	if version > latest {
		return fmt.Errorf("the database has schema version %d, and this program knows versions up to %d: a newer program migrated it; "+
			"run the newer program, or restore a backup from before its migration", version, latest)
	}
	return nil
}

// LatestSchema returns the version of this binary's schema: that of its last
// migration.
func LatestSchema() (int64, error) {
	files, err := fs.Glob(db.Migrations, "migrations/*.sql")
	if err != nil {
		return 0, fmt.Errorf("embedded migrations: %w", err)
	}
	var latest int64
	for _, name := range files {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "migrations/"), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("embedded migrations: %w", err)
		}
		latest = max(latest, version)
	}
	return latest, nil
}

// migrateRiver migrates River's tables and grants Countersign's roles their use.
func migrateRiver(ctx context.Context, url string) (int, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return 0, fmt.Errorf("open pool: %w", err)
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: RiverSchema})
	if err != nil {
		return 0, fmt.Errorf("river migrator: %w", err)
	}
	// Two processes at once: one makes the tables, the other waits. River's
	// migrations cannot share one transaction (a value that one adds to an
	// enum, the next uses), so the lock is the session's.
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return 0, fmt.Errorf("migrate river: %w", err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext('countersign river migration'))"); err != nil {
		return 0, fmt.Errorf("migrate river: lock: %w", err)
	}
	defer func() {
		// Closing the session would free it too; the pool is closed next.
		_, _ = conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock_all()")
	}()
	if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+RiverSchema); err != nil {
		return 0, fmt.Errorf("migrate river: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return 0, fmt.Errorf("migrate river: %w", err)
	}
	done, err := migrator.ExistingVersions(ctx)
	if err != nil {
		return 0, fmt.Errorf("migrate river: %w", err)
	}
	if _, err := conn.Exec(ctx, riverGrants); err != nil {
		return 0, fmt.Errorf("grant river: %w", err)
	}
	version := 0
	for _, m := range done {
		version = max(version, m.Version)
	}
	return version, nil
}

// The API wakes workers by inserting jobs; workers do everything else.
const riverGrants = `
GRANT USAGE ON SCHEMA ` + RiverSchema + ` TO countersign_api, countersign_worker;
GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ` + RiverSchema + ` TO countersign_api;
GRANT ALL ON ALL TABLES IN SCHEMA ` + RiverSchema + ` TO countersign_worker;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA ` + RiverSchema + ` TO countersign_api, countersign_worker;
`

// The stdlib driver is registered by its import; goose asks for it by name.
var _ = stdlib.GetDefaultDriver
