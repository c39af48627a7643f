//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// hba lets whoever reaches the socket in, since only the server's owner can
// enter its folder, and asks for the password on TCP.
const hba = `# Written by Countersign at every start.
local all all trust
host  all all 127.0.0.1/32 scram-sha-256
`

// firstBuiltin is the first major version whose locales do not depend on the
// operating system's.
const firstBuiltin = 17

// initialise creates the cluster unless there is one, and writes its access
// rules.
func (s *Server) initialise(ctx context.Context, fast bool) error {
	data := s.home.dataDir()
	if exists(data) {
		if err := s.checkMajor(); err != nil {
			return err
		}
	} else if err := s.initdb(ctx, fast); err != nil {
		return err
	}
	path := filepath.Join(data, "pg_hba.conf")
	if err := os.WriteFile(path, []byte(hba), 0o600); err != nil {
		return fmt.Errorf("write access rules: %w", err)
	}
	return s.account.own(path)
}

// checkMajor compares the data's major version with that of the programs.
func (s *Server) checkMajor() error {
	text, err := os.ReadFile(filepath.Join(s.home.dataDir(), "PG_VERSION"))
	if err != nil {
		return fmt.Errorf("%s is no PostgreSQL data folder: %w", s.home.dataDir(), err)
	}
	if major := strings.TrimSpace(string(text)); major != strconv.Itoa(s.bin.major) {
		return fmt.Errorf("%s holds data of PostgreSQL %s, and %s holds PostgreSQL %s: "+
			"set %s to the programs of version %s, or use another folder",
			s.home.dir, major, s.bin.dir, s.bin.version, BinEnv, major)
	}
	return nil
}

// initdb creates the cluster beside its place and moves it there when it is
// whole.
func (s *Server) initdb(ctx context.Context, fast bool) error {
	draft := s.home.dataDir() + ".new"
	if err := os.RemoveAll(draft); err != nil {
		return fmt.Errorf("remove a half-made cluster: %w", err)
	}
	if err := os.Mkdir(draft, 0o700); err != nil {
		return fmt.Errorf("create the cluster's folder: %w", err)
	}
	if err := s.account.own(draft); err != nil {
		return err
	}
	args := initdbArgs(draft, s.bin.major, fast)
	out, err := output(s.account.command(exec.CommandContext(ctx, s.bin.path("initdb"), args...), s.home.dir))
	if err != nil {
		return fmt.Errorf("initdb as %s: %w: %s", s.account, errors.Join(err, ctx.Err()), tail(strings.NewReader(string(out)), logTailBytes))
	}
	if err := os.Rename(draft, s.home.dataDir()); err != nil {
		return fmt.Errorf("move the cluster to its place: %w", err)
	}
	return nil
}

// initdbArgs asks for a cluster that sorts by code point and knows the case of
// all letters, the same on every machine, wherever the version allows it.
func initdbArgs(dir string, major int, fast bool) []string {
	args := []string{
		"--pgdata=" + dir, "--username=" + superuser, "--auth=trust", "--encoding=UTF8", "--no-instructions",
	}
	switch {
	case major >= firstBuiltin:
		args = append(args, "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
	case runtime.GOOS == "linux":
		args = append(args, "--locale=C.UTF-8")
	default:
		args = append(args, "--locale=C")
	}
	if fast {
		args = append(args, "--no-sync")
	}
	return args
}

// reserved are the settings that Start itself decides.
func reserved() []string {
	return []string{
		"config_file", "data_directory", "external_pid_file", "hba_file", "ident_file", "listen_addresses", "port",
		"unix_socket_directories", "unix_socket_permissions",
	}
}

// checkSettings refuses settings that would take the server out of our hands,
// and names that are none.
func checkSettings(settings map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if slices.Contains(reserved(), strings.ToLower(name)) {
			return fmt.Errorf("setting %s cannot be changed on a private server", name)
		}
		if name == "" || strings.ContainsAny(name, "= \t\n-") {
			return fmt.Errorf("%q is no name of a setting", name)
		}
	}
	return nil
}

// serverSettings returns the settings of a server for cfg.
func serverSettings(cfg Config) map[string]string {
	settings := map[string]string{
		"max_connections": "200",
		"shared_buffers":  "128MB",
		"timezone":        "UTC",
		"log_timezone":    "UTC",
	}
	if cfg.Fast {
		settings["fsync"] = "off"
		settings["synchronous_commit"] = "off"
		settings["full_page_writes"] = "off"
	}
	for name, value := range cfg.Settings {
		settings[strings.ToLower(name)] = value
	}
	return settings
}

// command prepares the server's process, and returns a function that closes
// our end of its log.
func (s *Server) command(port int) (cmd *exec.Cmd, closeLog func(), err error) {
	log, err := os.OpenFile(s.home.logFile(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the server's log: %w", err)
	}
	args := []string{"-D", s.home.dataDir()}
	settings := maps.Clone(s.settings)
	settings["port"] = strconv.Itoa(port)
	settings["listen_addresses"] = "127.0.0.1"
	settings["unix_socket_directories"] = s.home.socketDir
	settings["unix_socket_permissions"] = "0700"
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	// No CommandContext: the server outlives the context of its start.
	cmd = s.account.command(exec.Command(s.bin.path("postgres"), args...), s.home.dir)
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, func() { log.Close() }, nil
}
