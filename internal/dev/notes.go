package dev

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/builtin"
	"github.com/countersign-dev/countersign/internal/source/mcp"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/notebook"
)

const (
	// NotesSource is the id of the example server as a source.
	NotesSource = "notes"
	// builtinSource is the id of the source of built-in tools.
	builtinSource = "countersign"

	notesProgram = "notes-mcp"
	notesPackage = "github.com/countersign-dev/countersign/examples/notes-mcp"
	// notesStart bounds the time until the server prints its address.
	notesStart = 15 * time.Second
	// notesStop is the time that the server has to end before it is killed.
	notesStop = 5 * time.Second
)

// startNotes runs the example server until the environment closes, on the port that
// it had the last time if that is free, and waits until it prints its address.
func (e *Environment) startNotes(ctx context.Context) (string, error) {
	program, err := e.findNotes(ctx)
	if err != nil {
		return "", err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("start notes-mcp: %w", err)
	}
	defer func() { _ = out.Close() }()
	e.notesDir = filepath.Join(e.dir, "notes")
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(running, program, "-dir", e.notesDir, "-http", e.notesAddress(ctx))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = notesStop
	cmd.SysProcAttr = mcp.OwnGroup()
	cmd.Stdout, cmd.Stderr = in, logLines{e.cfg.Log}
	started, ended := make(chan error), make(chan struct{})
	// The environment's Close waits for this goroutine. It keeps its thread,
	// because Linux ends the child when the thread that started it ends.
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		if err = cmd.Wait(); running.Err() == nil {
			e.cfg.Log.Error("notes-mcp exited unexpectedly", slog.Any("error", err))
		}
	}()
	e.onStop(func() {
		stop()
		<-ended
	})
	err = <-started
	_ = in.Close() // the child has its own
	if err == nil {
		e.notesURL, err = awaitAddress(ctx, out)
	}
	if err == nil {
		err = e.keepNotesAddress(e.notesURL)
	}
	if err != nil {
		return "", fmt.Errorf("start notes-mcp: %w", err)
	}
	return fmt.Sprintf("%s, process %d", e.notesURL, cmd.Process.Pid), nil
}

// findNotes returns the program: the configured one, the one in the folder of
// this program, or one built from the source.
func (e *Environment) findNotes(ctx context.Context) (string, error) {
	if e.cfg.Notes != "" {
		return e.cfg.Notes, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), notesProgram)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	built := filepath.Join(e.dir, notesProgram)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", built, notesPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build has it, so that little is compiled
	if said, err := cmd.CombinedOutput(); err != nil {
		e.cfg.Log.WarnContext(ctx, "notes-mcp was not built", slog.Any("error", err), slog.String("output", string(said)))
		return "", errors.New("the example server notes-mcp is not in the folder of this program, and could not be built: run `make build`, or run this in the folder of Countersign's source")
	}
	return built, nil
}

// awaitAddress reads the line in which the server prints its address.
func awaitAddress(ctx context.Context, out *os.File) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = out.SetReadDeadline(time.Now()) })
	defer stop()
	if err := out.SetReadDeadline(time.Now().Add(notesStart)); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(io.LimitReader(out, 1<<10)).ReadString('\n')
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		return "", errors.New("it did not print its address; see the log")
	}
	return url, nil
}

// logLines logs a child's standard error.
type logLines struct{ log *slog.Logger }

// Write logs text as one entry.
func (w logLines) Write(text []byte) (int, error) {
	w.log.Info("notes-mcp wrote", slog.String("text", strings.TrimSpace(string(text))))
	return len(text), nil
}

// registerDemo registers the sources of the tenant demo.
func (e *Environment) registerDemo(ctx context.Context) (string, error) {
	return NotesSource + ", with its tools listed", e.registerSources(ctx, e.demo)
}

// registerSources makes the example server a source of a tenant, through the
// API as an administrator does, lists its tools, adds the built-in tools and,
// if the source is new, sets up the tools. Later the tools are as the user has
// set them up.
func (e *Environment) registerSources(ctx context.Context, of tenant) error {
	admin, err := e.Client(of.tokens.Admin)
	if err != nil {
		return err
	}
	known, err := hasSource(ctx, admin, NotesSource)
	if err != nil {
		return err
	}
	config, err := json.Marshal(connection.MCPConfig{Transport: "http", URL: e.notesURL})
	if err != nil {
		return err
	}
	if err := admin.PutSource(ctx, NotesSource, wire.SourceInput{Kind: catalog.KindMCP, Config: config}); err != nil {
		return err
	}
	if err := acceptNotes(ctx, admin); err != nil {
		return err
	}
	if err := e.putBuiltin(ctx, of.id); err != nil {
		return err
	}
	err = connection.NewRefresher(e.pool, e.cache, e.live, e.cfg.Log).Refresh(ctx, of.id, NotesSource)
	if err != nil || known {
		return err
	}
	return setUpTools(ctx, admin)
}

// hasSource reports whether a tenant has a source.
func hasSource(ctx context.Context, admin *client.Client, id string) (bool, error) {
	all, err := admin.Sources(ctx)
	return slices.ContainsFunc(all, func(src wire.Source) bool { return src.ID == id }), err
}

// acceptNotes accepts where the example server is: at another address each time
// that it is started.
func acceptNotes(ctx context.Context, admin *client.Client) error {
	all, err := admin.Sources(ctx)
	if err != nil {
		return err
	}
	for _, src := range all {
		if src.ID == NotesSource && !src.AddressAccepted {
			return admin.AcceptSource(ctx, src)
		}
	}
	return nil
}

// setUpTools configures the tools of the example server as a person would:
// their effect classes, and that publishing needs no approval.
func setUpTools(ctx context.Context, admin *client.Client) error {
	for tool, o := range map[string]wire.Overrides{
		toolCreate:  {Effect: envelope.EffectKeyed},
		toolPublish: {Effect: envelope.EffectIdempotent, MaxAttempts: 4},
	} {
		if err := admin.OverrideTool(ctx, NotesSource+":"+tool, o); err != nil {
			return fmt.Errorf("set up the tool %s: %w", tool, err)
		}
	}
	return admin.PutMode(ctx, wire.Mode{Tool: NotesSource + ":" + toolPublish, Mode: envelope.ModeAllow})
}

// putBuiltin gives a tenant the built-in tools.
func (e *Environment) putBuiltin(ctx context.Context, of envelope.TenantID) error {
	source, err := builtin.With(builtin.Config{Notes: notebook.NewBook(e.pool).Of(of, builtinSource)})
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	tools, err := source.List(ctx)
	if err != nil {
		return err
	}
	return postgres.InTx(ctx, e.pool, postgres.API(of), func(tx pgx.Tx) error {
		src := catalog.Source{ID: builtinSource, Kind: catalog.KindBuiltin, Enabled: true}
		if err := catalog.PutSource(ctx, tx, of, src); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, of, builtinSource, tools)
	})
}

// Client returns a client of the API with a token.
func (e *Environment) Client(token string) (*client.Client, error) {
	return client.New(e.url, token, client.Config{Agent: "countersign-dev"})
}

// LoginURL returns an address that logs one browser in as the owner of the tenant
// demo.
func (e *Environment) LoginURL(ctx context.Context) (string, error) {
	owner, err := e.Client(e.demo.tokens.Owner)
	if err != nil {
		return "", err
	}
	code, err := owner.CreateLoginCode(ctx)
	return code.URL, err
}
