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
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const downloadVersion = embeddedpostgres.V18

// fetch downloads PostgreSQL into cache, unless it is there already, and
// returns the folder with its programs. Repository is the Maven repository to
// ask; empty means the library's own. It gives up when ctx ends.
func fetch(ctx context.Context, cache, repository string, log *slog.Logger) (string, error) {
	final := filepath.Join(cache, "postgresql-"+string(downloadVersion))
	if exists(filepath.Join(final, "bin", "postgres")) {
		return filepath.Join(final, "bin"), nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	log.InfoContext(ctx, "downloading postgres", slog.String("version", string(downloadVersion)), slog.String("into", final))

	// The library's download cannot be cancelled. When ctx ends, this
	// goroutine goes on and cleans up behind itself; nobody waits for it.
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

// unpackInto fetches and unpacks beside final, and renames the whole at the
// end, so that final is never half there.
func unpackInto(cache, final, repository string) (err error) {
	work, err := os.MkdirTemp(cache, "download-")
	if err != nil {
		return fmt.Errorf("create a folder for the download: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	// The library has no call that only fetches. So it gets a data folder
	// that looks initialised and is empty: it fetches, unpacks, asks for a
	// start, and that fails, as is meant. What counts is what it unpacked.
	data := filepath.Join(work, "no-data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return fmt.Errorf("create a folder for the download: %w", err)
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("18\n"), 0o600); err != nil {
		return fmt.Errorf("prepare the download: %w", err)
	}
	port, err := freePort(context.Background(), 0)
	if err != nil {
		return err
	}
	unpacked := filepath.Join(work, "postgresql")
	cfg := embeddedpostgres.DefaultConfig().
		Version(downloadVersion).
		CachePath(filepath.Join(work, "archive")).
		RuntimePath(filepath.Join(work, "runtime")).
		BinariesPath(unpacked).
		DataPath(data).
		Port(uint32(port)). // a TCP port
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
// run what root unpacked, whatever the umask was.
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
