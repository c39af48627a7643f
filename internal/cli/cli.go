// Package cli is the command line: what its words and flags mean, and how what
// comes of them is shown to people and to scripts. It owns the exit codes and
// the forms of output. It refuses to decide anything: commands speak to the
// API as any other client does, and only those that set a database up touch
// one.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
)

// The exit codes.
const (
	// ExitOK means that it was done.
	ExitOK = 0
	// ExitFailed means that it was not, and why is on standard error.
	ExitFailed = 1
	// ExitUsage means that the words or flags are wrong, and nothing was done.
	ExitUsage = 2
	// ExitEnvelope means that the command worked, and that an envelope it is
	// about was denied, expired or failed; or that a policy that was tried comes
	// out differently, where that was asked for.
	ExitEnvelope = 3
	// ExitInterrupted means that a signal ended it first.
	ExitInterrupted = 130
)

// System is what a command has to do with the world around it.
type System struct {
	In       io.Reader
	Out, Err io.Writer
	// Program is how this one was called.
	Program string
	// Getenv reads an environment variable.
	Getenv func(string) string
}

// Run does what the arguments say and returns the exit code. When ctx ends,
// the command does.
func Run(ctx context.Context, args []string, sys System) int {
	a := &app{sys: sys}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(sys.In)
	root.SetOut(sys.Out)
	root.SetErr(sys.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(sys.Err, "countersign: stopped")
		return ExitInterrupted
	}
	return a.fail(err)
}

// app is one run of the command line.
type app struct {
	sys System
	// json is whether output is for scripts.
	json bool
	// url and token say where the API is and who asks.
	url, token string
	// begun is set once the words and flags were understood.
	begun bool
}

// usageError says that a command was called in a wrong way.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func misuse(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errEnvelope says that an envelope ended without its effect. What became of
// it has been shown.
var errEnvelope = errors.New("an envelope was denied, expired or failed")

// fail shows an error, with what to do about it, and returns the exit code.
func (a *app) fail(err error) int {
	if errors.Is(err, errEnvelope) || errors.Is(err, errChange) {
		return ExitEnvelope
	}
	code := ExitFailed
	if _, ok := errors.AsType[*usageError](err); ok || !a.begun {
		code = ExitUsage
	}
	if a.json {
		a.failJSON(err)
		return code
	}
	fmt.Fprintln(a.sys.Err, "countersign:", err)
	if hint := a.advice(err, code); hint != "" {
		fmt.Fprintln(a.sys.Err, hint)
	}
	return code
}

// failJSON writes an error as one line that scripts can read.
func (a *app) failJSON(err error) {
	doc := struct {
		Error   string          `json:"error"`
		Problem *client.Problem `json:"problem,omitempty"`
	}{Error: err.Error()}
	if p, ok := errors.AsType[*client.Problem](err); ok {
		doc.Problem = p
	}
	text, err := json.Marshal(doc)
	if err != nil { // it is made of strings and numbers alone
		text = []byte(`{"error":"the error cannot be written as JSON"}`)
	}
	fmt.Fprintln(a.sys.Err, string(text))
}

// advice says what to do about an error.
func (a *app) advice(err error, code int) string {
	if code == ExitUsage {
		return "Run the command with --help to see how it is used."
	}
	if _, ok := errors.AsType[*client.UnreachableError](err); ok {
		return "Is the API running there? `countersign dev` starts one; --url or " + urlEnv + " says where it is."
	}
	p, ok := errors.AsType[*client.Problem](err)
	switch {
	case !ok:
		return ""
	case strings.HasSuffix(p.Type, ":unauthorized"):
		return "Put a token into " + tokenEnv + ", or log in with `countersign login`. `countersign dev` prints some; `countersign token create` makes one."
	case strings.HasSuffix(p.Type, ":busy"):
		return "Try again in a moment."
	}
	return ""
}

// client returns the way to the API.
func (a *app) client() (*client.Client, error) {
	cfg := client.Config{Agent: "countersign/" + Version()}
	if a.token == "" {
		cfg.Token = a.loggedIn
	}
	c, err := client.New(a.url, a.token, cfg)
	if err != nil {
		return nil, misuse("%v", err)
	}
	return c, nil
}

// note says something to a person that is no result: to standard error, and
// not to scripts.
func (a *app) note(format string, args ...any) {
	if !a.json {
		fmt.Fprintf(a.sys.Err, format+"\n", args...)
	}
}

// document writes a value as one line of JSON.
func (a *app) document(v any) error {
	encoder := json.NewEncoder(a.sys.Out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// run makes a command's function out of one that needs the API.
func (a *app) run(do func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.client()
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, args)
	}
}
