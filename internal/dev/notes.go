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
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/builtin"
	"github.com/countersign-dev/countersign/internal/source/connect"
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
	// notesStart bounds how long the server may take to say where it listens.
	notesStart = 15 * time.Second
	// notesStop is how long it may take to leave before it is killed.
	notesStop = 5 * time.Second
)

// notesServer is the example MCP server, a process of its own.
type notesServer struct {
	dir, url string
	process  *os.Process
	ended    chan struct{}
	// asked is set when it was told to end.
	asked atomic.Bool
}

// startNotes runs the example server on a free port.
func (h *House) startNotes(ctx context.Context) (string, error) {
	program, err := h.findNotes(ctx)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(h.dir, "notes")
	s, err := launchNotes(ctx, program, dir, h.cfg.Log)
	if err != nil {
		return "", err
	}
	h.notes = s
	h.onClose(func(context.Context) error {
		s.stop()
		return nil
	})
	return fmt.Sprintf("%s, process %d", s.url, s.process.Pid), nil
}

// findNotes returns the program: the configured one, the one beside this
// program, or one that is built from the source.
func (h *House) findNotes(ctx context.Context) (string, error) {
	if h.cfg.Notes != "" {
		return h.cfg.Notes, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), notesProgram)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	built := filepath.Join(h.dir, notesProgram)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", built, notesPackage)
	if said, err := cmd.CombinedOutput(); err != nil {
		h.cfg.Log.WarnContext(ctx, "notes-mcp was not built", slog.Any("error", err), slog.String("output", string(said)))
		return "", errors.New("the example server notes-mcp is not beside this program, and could not be built: run `make build`, or run this in the folder of Countersign's source")
	}
	return built, nil
}

// launchNotes starts the program and waits until it says where it listens.
func launchNotes(ctx context.Context, program, dir string, log *slog.Logger) (*notesServer, error) {
	cmd := exec.Command(program, "-dir", dir, "-http", "127.0.0.1:0")
	cmd.SysProcAttr = childAttributes()
	cmd.Stderr = logLines{log}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start notes-mcp: %w", err)
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout = in
	s := &notesServer{dir: dir, ended: make(chan struct{})}
	started := make(chan error)
	// The server owns this goroutine: stop waits for it. It keeps its thread
	// to itself, because Linux ends the child when the thread dies that
	// started it.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		err = cmd.Wait()
		if !s.asked.Load() {
			log.Error("notes-mcp ended by itself", slog.Any("error", err))
		}
		close(s.ended)
	}()
	err = <-started
	_ = in.Close() // the child has its own
	if err != nil {
		return nil, fmt.Errorf("start notes-mcp: %w", err)
	}
	s.process = cmd.Process
	if s.url, err = awaitAddress(ctx, out); err != nil {
		s.stop()
		return nil, fmt.Errorf("start notes-mcp: %w", err)
	}
	return s, nil
}

// awaitAddress reads the line in which the server says where it listens.
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
		return "", errors.New("it did not say where it listens; see the log")
	}
	return url, nil
}

// stop ends the process, by force if it does not leave, and waits for it.
func (s *notesServer) stop() {
	s.asked.Store(true)
	_ = s.process.Signal(syscall.SIGTERM) // it may have ended
	timer := time.NewTimer(notesStop)
	defer timer.Stop()
	select {
	case <-s.ended:
		return
	case <-timer.C:
	}
	_ = s.process.Kill()
	<-s.ended
}

// logLines passes on what a child says on its standard error.
type logLines struct{ log *slog.Logger }

// Write logs what it is given.
func (w logLines) Write(text []byte) (int, error) {
	w.log.Info("notes-mcp says", slog.String("text", strings.TrimSpace(string(text))))
	return len(text), nil
}

// registerNotes makes the server a source, over the API as an administrator
// would, and has its tools listed at once.
func (h *House) registerNotes(ctx context.Context) (string, error) {
	admin, err := h.Client(h.tokens.Admin)
	if err != nil {
		return "", err
	}
	config, err := json.Marshal(connect.MCPConfig{Transport: "http", URL: h.notes.url})
	if err != nil {
		return "", err
	}
	if err := admin.PutSource(ctx, NotesSource, client.SourceInput{Kind: catalog.KindMCP, Config: config}); err != nil {
		return "", err
	}
	if err := h.putBuiltin(ctx); err != nil {
		return "", err
	}
	if err := connect.NewRefresher(h.pool, h.cache, h.live, h.cfg.Log).Refresh(ctx, h.tenant, NotesSource); err != nil {
		return "", err
	}
	return NotesSource + ", with its tools listed", nil
}

// putBuiltin gives the tenant the built-in tools.
func (h *House) putBuiltin(ctx context.Context) error {
	source, err := builtin.With(builtin.Config{Notes: notebook.NewBook(h.pool).Of(h.tenant, builtinSource)})
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	tools, err := source.List(ctx)
	if err != nil {
		return err
	}
	return postgres.InTx(ctx, h.pool, postgres.API(h.tenant), func(tx pgx.Tx) error {
		src := catalog.Source{ID: builtinSource, Kind: catalog.KindBuiltin, Enabled: true}
		if err := catalog.PutSource(ctx, tx, h.tenant, src); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, h.tenant, builtinSource, tools)
	})
}

// Client speaks to the house's API with a token.
func (h *House) Client(token string) (*client.Client, error) {
	return client.New(h.url, token, client.Config{Agent: "countersign-dev"})
}
