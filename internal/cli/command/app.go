// Package command is what every command of the command line shares: the
// connection to the API, flags, forms of output, errors with their exit codes,
// and files of which each field's position is known. It does not know any
// command.
package command

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

// Execute runs the command that build returns, with arguments, and returns the
// exit code. When ctx ends, so does the command.
func Execute(ctx context.Context, args []string, sys System, build func(*App) *cobra.Command) int {
	a := &App{System: sys}
	root := build(a)
	a.connect(root)
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

// App is one run of the command line.
type App struct {
	System
	// json is whether output is for scripts.
	JSON bool
	// url and token say where the API is and who asks.
	URL, Token string
	// begun is set once the words and flags were understood.
	begun bool
}

// UsageError says that a command was called in a wrong way.
type UsageError struct{ text string }

// Error returns the text.
func (e *UsageError) Error() string { return e.text }

// Misuse returns a *UsageError.
func Misuse(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// ErrAction says that an envelope ended without its effect. What became of
// it has been shown.
var ErrAction = errors.New("an envelope was denied, expired or failed")

// fail shows an error, with what to do about it, and returns the exit code.
func (a *App) fail(err error) int {
	if errors.Is(err, ErrAction) || errors.Is(err, ErrPolicyChange) {
		return ExitEnvelope
	}
	code := ExitFailed
	if _, ok := errors.AsType[*UsageError](err); ok || !a.begun {
		code = ExitUsage
	}
	if a.JSON {
		a.failJSON(err)
		return code
	}
	fmt.Fprintln(a.Err, "countersign:", err)
	if hint := a.advice(err, code); hint != "" {
		fmt.Fprintln(a.Err, hint)
	}
	return code
}

// failJSON writes an error as one line that scripts can read.
func (a *App) failJSON(err error) {
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
	fmt.Fprintln(a.Err, string(text))
}

// advice says what to do about an error.
func (a *App) advice(err error, code int) string {
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
		return "Put a token into " + TokenEnv + ", or log in with `countersign login`. `countersign dev` prints some; `countersign token create` makes one."
	case strings.HasSuffix(p.Type, ":busy"):
		return "Try again in a moment."
	}
	return ""
}

// Client returns the way to the API.
func (a *App) Client() (*client.Client, error) {
	cfg := client.Config{Agent: "countersign/" + Version()}
	if a.Token == "" {
		cfg.Token = a.LoggedIn
	}
	c, err := client.New(a.URL, a.Token, cfg)
	if err != nil {
		return nil, Misuse("%v", err)
	}
	return c, nil
}

// Note says something to a person that is no result: to standard error, and
// not to scripts.
func (a *App) Note(format string, args ...any) {
	if !a.JSON {
		fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

// WriteJSON writes a value as one line of JSON.
func (a *App) WriteJSON(v any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// WithClient makes a command's function out of one that needs the API.
func (a *App) WithClient(do func(ctx context.Context, c *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.Client()
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, args)
	}
}

// ErrPolicyChange says that a policy comes out differently. What does has been
// shown.
var ErrPolicyChange = errors.New("the policy decides differently")

// The environment variables of the connection and the database.
const (
	urlEnv      = "COUNTERSIGN_URL"
	TokenEnv    = "COUNTERSIGN_TOKEN"
	DatabaseEnv = "DATABASE_URL"

	defaultURL = "http://127.0.0.1:8080"
)

// connect gives a root command the flags that every command has.
func (a *App) connect(root *cobra.Command) {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRun = func(*cobra.Command, []string) {
		a.begun = true
		a.fillConnection()
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Misuse("%v", err) })
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "write JSON: one document, or one object a line for streams")
	root.PersistentFlags().StringVar(&a.URL, "url", "", "the `address` of the API (default $"+urlEnv+" or "+defaultURL+")")
	root.PersistentFlags().StringVar(&a.Token, "token", "", "a `token` (default $"+TokenEnv+", which is safer)")
}

// fillConnection takes what no flag said from the environment.
func (a *App) fillConnection() {
	if a.URL == "" {
		a.URL = a.Getenv(urlEnv)
	}
	if a.URL == "" {
		a.URL = defaultURL
	}
	if a.Token == "" {
		a.Token = a.Getenv(TokenEnv)
	}
}

// Group is what a command does that only has others below it: it shows them,
// unless it was given a word that it does not know.
func Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	cmd.SuggestionsMinimumDistance = 2
	text := "there is no command " + cmd.CommandPath() + " " + args[0]
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return Misuse("%s", text)
}

// Arguments counts a command's arguments in words that say what they are.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least && most == 1:
			return Misuse("%s needs %s", cmd.CommandPath(), what)
		case len(args) < least:
			return Misuse("%s needs at least %d argument(s): %s", cmd.CommandPath(), least, what)
		case most == 0 && len(args) > 0:
			return Misuse("%s takes no arguments, and was given %d", cmd.CommandPath(), len(args))
		case most >= 0 && len(args) > most:
			return Misuse("%s takes only %s, and was given %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// Many bounds nothing.
const Many = -1
