package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/countersign-dev/countersign/db"
)

// Migrated is the result of Migrate.
type Migrated struct {
	// From and To are the schema's versions before and after.
	From, To int64
	// River is the version of River's tables after.
	River int
}

// Migrate brings the database to this binary's schema: the roles, Countersign's
// tables and River's. Several processes may run it concurrently; one waits for
// the other. The URL's user must be allowed to create roles and schemas. If
// another login may create in a schema of Countersign, the error is an
// ExposedError.
func Migrate(ctx context.Context, url string) (m Migrated, err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return m, errNoURL()
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return m, fmt.Errorf("open database: %w", err)
	}
	// Closing the session releases its lock.
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	// Schemas that exist already are searched only after prepare has checked them.
	if _, err := conn.Exec(ctx, "SET search_path = pg_catalog, pg_temp"); err != nil {
		return m, fmt.Errorf("set search path: %w", err)
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", lock.DefaultLockID); err != nil {
		return m, fmt.Errorf("migration lock: %w", err)
	}
	if err := prepare(ctx, conn); err != nil {
		return m, err
	}
	sqldb := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		// Tables are created in the first schema; pg_catalog is searched before it all the same.
		_, err := conn.Exec(ctx, "SET search_path = "+Schema+", pg_temp")
		return err
	}))
	defer func() { _ = sqldb.Close() }()
	if err := migrateOurs(ctx, sqldb, &m); err != nil {
		return m, err
	}
	m.River, err = migrateRiver(ctx, url)
	return m, err
}

// prepare runs db/prepare.sql and checks the schemas, in one transaction.
func prepare(ctx context.Context, conn *pgx.Conn) error {
	statements, err := db.Migrations.ReadFile("prepare.sql")
	if err != nil {
		return fmt.Errorf("embedded migrations: %w", err)
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Check before the statements that rely on the schemas, and after those that create
		// them.
		if err := checkExposure(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, string(statements)); err != nil {
			return fmt.Errorf("prepare database: %w", err)
		}
		return checkExposure(ctx, tx)
	})
}

// migrateOurs runs the goose migrations.
func migrateOurs(ctx context.Context, sqldb *sql.DB, m *Migrated) error {
	files, err := migrations()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, sqldb, files)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if m.From, err = provider.GetDBVersion(ctx); err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if err := checkNotNewer(m.From); err != nil {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if m.To, err = provider.GetDBVersion(ctx); err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	// Readiness compares the schema's version with the binary's.
	if _, err := sqldb.ExecContext(ctx, "GRANT SELECT ON goose_db_version TO countersign_api, countersign_worker, countersign_triage"); err != nil {
		return fmt.Errorf("grant schema version: %w", err)
	}
	return nil
}

// movedAt is the version at which tables left the schema public.
const movedAt = "00012"

// migrations returns the migrations. Those before movedAt name the schema public,
// which is replaced by Schema: a new database never has anything of Countersign in
// public.
func migrations() (fs.FS, error) {
	names, err := fs.Glob(db.Migrations, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("embedded migrations: %w", err)
	}
	moved := strings.NewReplacer("search_path = public, pg_temp", "search_path = "+SearchPath, "public.", Schema+".")
	files := fstest.MapFS{}
	for _, name := range names {
		text, err := db.Migrations.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("embedded migrations: %w", err)
		}
		name = path.Base(name)
		if name < movedAt {
			text = []byte(moved.Replace(string(text)))
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	return files, nil
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
	pool, err := Open(ctx, Config{URL: url, MaxConns: 2})
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: RiverSchema})
	if err != nil {
		return 0, fmt.Errorf("river migrator: %w", err)
	}
	if _, err := pool.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+RiverSchema); err != nil {
		return 0, fmt.Errorf("migrate river: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return 0, fmt.Errorf("migrate river: %w", err)
	}
	done, err := migrator.ExistingVersions(ctx)
	if err != nil {
		return 0, fmt.Errorf("migrate river: %w", err)
	}
	if _, err := pool.Exec(ctx, riverGrants); err != nil {
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
