package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/dev"
	"github.com/countersign-dev/countersign/internal/telemetry"
)

type devFlags struct {
	once, verbose        bool
	listen, dir, program string
}

// Dev returns the command dev.
func Dev(a *command.App) *cobra.Command {
	var f devFlags
	cmd := command.NewLocal("dev", command.NoArguments(), func(ctx context.Context, _ []string) error {
		return runDev(ctx, a, f)
	})
	cmd.Flags().BoolVar(&f.once, "once", false, "exit after the demonstration and delete its data")
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8080", "`address` of the API; port 0 chooses a free port")
	cmd.Flags().StringVar(&f.dir, "data-dir", "", "`folder` for data, tokens and notes (default "+dataDirHelp+")")
	cmd.Flags().BoolVar(&f.verbose, "verbose", false, "write the log to standard error, not to a file")
	cmd.Flags().StringVar(&f.program, "notes", "", "`program` of the example server (default: notes-mcp next to this program, or built)")
	return cmd
}

// runDev opens the environment, runs the demonstration and, without --once, waits
// until ctx ends. A demonstration that fails ends --once alone.
func runDev(ctx context.Context, a *command.App, f devFlags) (err error) {
	if f.once && f.dir != "" {
		return command.Misuse("--once uses a temporary folder, and cannot be combined with --data-dir")
	}
	cfg := dev.Config{
		DatabaseURL: a.Getenv(command.DatabaseEnv), SecretKey: a.Getenv("COUNTERSIGN_SECRET_KEY"), Listen: f.listen, Notes: f.program, Version: telemetry.Version(), Progress: a.Out,
		Getenv: a.Getenv,
	}
	if a.JSON {
		cfg.Progress = a.Err
	}
	if f.once {
		cfg.Listen = "127.0.0.1:0"
	} else {
		cfg.Dir, cfg.Mailbox = cmp.Or(f.dir, DataDir(a)), true
	}
	log, where, done, err := devLog(a, cfg.Dir, f.verbose)
	if err != nil {
		return err
	}
	cfg.Log = log
	defer func() { err = errors.Join(err, done(err)) }()

	fmt.Fprintln(cfg.Progress, "Starting Countersign on this machine:")
	h, err := dev.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		if !f.once {
			a.Note("Stopping …")
		}
		err = errors.Join(err, h.Close())
	}()
	fmt.Fprintf(cfg.Progress, "  ready in %.1f s\n\nThe demonstration: an agent proposes actions; policy and an operator decide.\n\n", h.Elapsed().Seconds())
	err = demonstrate(ctx, a, h)
	if err != nil && !f.once && ctx.Err() == nil {
		a.Note("%v\nThe environment is running anyway.", err)
		err = nil
	}
	if err != nil || f.once {
		return err
	}
	if err := welcome(ctx, a, h, where); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-h.Failed():
		return err
	}
}

func demonstrate(ctx context.Context, a *command.App, h *dev.Environment) error {
	report, err := h.Demonstrate(ctx)
	if err != nil {
		return err
	}
	if a.JSON {
		if err := a.WriteJSON(report); err != nil {
			return err
		}
	} else if err := report.Write(a.Out); err != nil {
		return err
	}
	return report.Err()
}

// welcome prints the next steps. It shows tokens, which are those of a tenant
// for development.
func welcome(ctx context.Context, a *command.App, h *dev.Environment, log string) error {
	page, err := h.LoginURL(ctx)
	if err != nil {
		return err
	}
	out := a.Out
	if a.JSON {
		out = a.Err
	}
	tokens, database := h.Tokens(), ""
	if url := h.PrivateDatabaseURL(); url != "" {
		database = fmt.Sprintf("  export DATABASE_URL='%s'\n", url)
	}
	_, err = fmt.Fprintf(out, `
It stays up until Ctrl-C (a second one forces the end).

  page      %[9]s
            logs a browser in as the owner, once, within ten minutes;
            another one: %[7]s ui --token TOKEN

  API       %[1]s
  MCP       %[1]s/mcp
            paste this URL into an MCP client: it logs in through the page
  agent     %[2]s
  operator  %[3]s
  admin     %[4]s
  owner     %[8]s
  tokens    %[5]s
  log       %[6]s

To use in another terminal (psql "$DATABASE_URL" opens the database):

%[10]s  export COUNTERSIGN_URL=%[1]s AGENT_TOKEN=%[2]s OPERATOR_TOKEN=%[3]s ADMIN_TOKEN=%[4]s
  export COUNTERSIGN_TOKEN=$AGENT_TOKEN

Three commands to try there:

  %[7]s submit --tool notes:notes.create --args '{"title":"Hello","body":"from me"}'
  %[7]s list --approval required
  %[7]s approve ID --wait --token %[3]s
`, h.URL(), tokens.Agent, tokens.Operator, tokens.Admin, h.TokensFile(), log, program(a), tokens.Owner, page, database)
	return err
}

// program returns the command to call this program again.
func program(a *command.App) string {
	if a.Program == "" || strings.Contains(a.Program, "go-build") {
		return "countersign"
	}
	return a.Program
}

const dataDirHelp = "the user's folder for data"

// DataDir returns the folder for data of the user's programs on this system. For
// root that is not in root's home, which the account that a private server then
// runs as cannot enter.
func DataDir(a *command.App) string {
	home, err := os.UserHomeDir()
	switch {
	case a.Getenv("XDG_DATA_HOME") != "":
		return filepath.Join(a.Getenv("XDG_DATA_HOME"), "countersign")
	case os.Geteuid() == 0:
		return "/var/lib/countersign"
	case err != nil:
		return ".countersign"
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support", "countersign")
	}
	return filepath.Join(home, ".local", "share", "countersign")
}

// devLog opens the log: standard error, or a file. A temporary file is kept, and
// named at the end, only if something failed.
func devLog(a *command.App, dir string, verbose bool) (log *slog.Logger, where string, done func(error) error, err error) {
	if verbose {
		return textLog(a.Err), "on standard error", func(error) error { return nil }, nil
	}
	var file *os.File
	if dir == "" {
		file, err = os.CreateTemp("", "countersign-dev-*.log")
	} else if err = os.MkdirAll(dir, 0o711); err == nil {
		file, err = os.OpenFile(filepath.Join(dir, "dev.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	if err != nil {
		return nil, "", nil, fmt.Errorf("open the log: %w; choose another folder with --data-dir", err)
	}
	done = func(failed error) error {
		if failed != nil && !errors.Is(failed, context.Canceled) {
			a.Note("The log is in %s", file.Name())
			return file.Close()
		}
		err := file.Close()
		if dir == "" {
			err = errors.Join(err, os.Remove(file.Name()))
		}
		return err
	}
	return textLog(file), file.Name(), done, nil
}

// textLog writes lines for people. Values with the name of a secret are hidden.
func textLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
		if telemetry.SecretName(attr.Key) {
			return slog.String(attr.Key, "[REDACTED]")
		}
		return attr
	}}))
}
