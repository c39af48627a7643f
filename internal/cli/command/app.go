// Package command is what every command of the command line shares: the
// connection to the API, flags, forms of output, errors with their exit codes,
// and files of which each field's position is known. It does not know any
// command.
package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/visible"
)

// The exit codes.
const (
	// ExitOK means that the command succeeded.
	ExitOK = 0
	// ExitFailed means that the command failed; the reason is on standard
	// error.
	ExitFailed = 1
	// ExitUsage means that words, flags or values are wrong, and nothing was
	// done.
	ExitUsage = 2
	// ExitAction means that the command worked, and that an action was denied,
	// expired or failed; or that "policy simulate --fail-on-change" found a
	// difference.
	ExitAction = 3
	// ExitInterrupted means that a signal ended the command.
	ExitInterrupted = 130
)

// System is the surroundings of a command.
type System struct {
	In       io.Reader
	Out, Err io.Writer
	// Program is the name by which the program was called.
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
	// JSON is whether output is for scripts.
	JSON bool
	// URL is the address of the API, and Token the caller's.
	URL, Token string
	// create makes the changes of the client creations.
	create bool
	// begun is set when the words and flags have been read.
	begun bool
}

// UsageError means that a command was called wrongly.
type UsageError struct{ text string }

// Error returns the text.
func (e *UsageError) Error() string { return e.text }

// Misuse returns a *UsageError.
func Misuse(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Errors that end a command with ExitAction, after it has shown the cause.
var (
	// ErrAction means that an action ended without its effect.
	ErrAction = errors.New("an action was denied, expired or failed")
	// ErrPolicyChange means that a simulated policy decides differently.
	ErrPolicyChange = errors.New("the policy decides differently")
)

// fail prints an error with its remedy, and returns the exit code.
func (a *App) fail(err error) int {
	if errors.Is(err, ErrAction) || errors.Is(err, ErrPolicyChange) {
		return ExitAction
	}
	code := ExitFailed
	if _, ok := errors.AsType[*UsageError](err); ok || !a.begun || errors.Is(err, client.ErrInvalid) {
		code = ExitUsage
	}
	if a.JSON {
		a.failJSON(err)
		return code
	}
	fmt.Fprintln(a.Err, "countersign:", visible.Text(err.Error()))
	if hint := a.advice(err, code); hint != "" {
		fmt.Fprintln(a.Err, hint)
	}
	return code
}

// failJSON writes an error as one line that scripts can read.
func (a *App) failJSON(err error) {
	problem, _ := errors.AsType[*client.Problem](err)
	text, err := json.Marshal(struct {
		Error   string          `json:"error"`
		Problem *client.Problem `json:"problem,omitempty"`
	}{err.Error(), problem})
	if err != nil { // it is made of strings and numbers alone
		text = []byte(`{"error":"the error cannot be written as JSON"}`)
	}
	fmt.Fprintln(a.Err, string(text))
}

// advice returns the remedy for an error.
func (a *App) advice(err error, code int) string {
	if code == ExitUsage && !errors.Is(err, client.ErrInvalid) {
		return "Run the command with --help for usage."
	}
	if _, ok := errors.AsType[*client.UnreachableError](err); ok {
		return "Is the API running there? `countersign dev` starts one; --url or " + urlEnv + " sets its address."
	}
	switch {
	case errors.Is(err, client.ErrUnauthorized):
		return "Put a token into " + TokenEnv + ", or log in with `countersign login`. `countersign dev` prints some; `countersign token create` makes one."
	case errors.Is(err, client.ErrBusy), errors.Is(err, client.ErrLimited):
		if p, ok := errors.AsType[*client.Problem](err); ok && p.RetryAfter > 0 {
			return fmt.Sprintf("Try again in %s.", p.RetryAfter)
		}
		return "Try again in a moment."
	}
	return ""
}

// Client returns a client of the API.
func (a *App) Client() (*client.Client, error) {
	cfg := client.Config{Agent: "countersign/" + telemetry.Version(), Retries: -1}
	if a.Token == "" {
		cfg.Token = a.LoggedIn
	}
	c, err := client.New(a.URL, a.Token, cfg)
	if err != nil {
		return nil, Misuse("%v", err)
	}
	if a.create {
		c = c.Creating()
	}
	return c, nil
}

// CreateFlag adds the flag of a command that sets something by its name, and
// returns the command.
func (a *App) CreateFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.create, "create", false, "create only; an error if it exists already")
	return cmd
}

// Note prints information that is not a result: on standard error, and not with
// --json. It is escaped as by Safe, and may have several lines.
func (a *App) Note(format string, args ...any) {
	if !a.JSON {
		fmt.Fprintln(a.Err, visible.Text(fmt.Sprintf(format, args...)))
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

// WithClient returns the function of a command that needs the API.
func (a *App) WithClient(run Run) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.Client()
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, args)
	}
}

// The environment variables of the connection and the database, and the address
// without one.
const (
	urlEnv      = "COUNTERSIGN_URL"
	TokenEnv    = "COUNTERSIGN_TOKEN"
	DatabaseEnv = "DATABASE_URL"

	DefaultURL = "http://127.0.0.1:8080"
)

// connect gives a root command the flags that every command has.
func (a *App) connect(root *cobra.Command) {
	root.SetGlobalNormalizationFunc(oldNames)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRun = func(*cobra.Command, []string) {
		a.begun = true
		a.URL = cmp.Or(a.URL, a.Getenv(urlEnv), DefaultURL)
		a.Token = cmp.Or(a.Token, a.Getenv(TokenEnv))
	}
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON: one document, or one object per line for streams")
	root.PersistentFlags().StringVar(&a.URL, "url", "", "`address` of the API (default $"+urlEnv+" or "+DefaultURL+")")
	root.PersistentFlags().StringVar(&a.Token, "token", "", "API `token` (default $"+TokenEnv+", which is safer)")
}

// Run is the work of a command that needs the API.
type Run func(ctx context.Context, c *client.Client, args []string) error

// New returns a command that needs the API. Its help comes from help.txt, as
// that of every command does.
func New(a *App, use string, args cobra.PositionalArgs, run Run) *cobra.Command {
	return &cobra.Command{Use: use, Args: args, RunE: a.WithClient(run)}
}

// NewLocal returns a command that makes its own connections.
func NewLocal(use string, args cobra.PositionalArgs, run func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Args: args, RunE: func(cmd *cobra.Command, words []string) error { return run(cmd.Context(), words) }}
}

// NewGroup returns a command that only has others below it.
func NewGroup(use string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Args: cobra.ArbitraryArgs, RunE: Group, DisableFlagsInUseLine: true}
	cmd.AddCommand(below...)
	return cmd
}

// Group shows the commands below a group, unless the group was given a word
// that it does not know.
func Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var known []string
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			known = append(known, below.Name())
		}
	}
	return Misuse("unknown command %s %s%s", cmd.CommandPath(), args[0], fault.Suggestion(fault.Nearest(args[0], known)))
}

// NewList returns the command list, which shows the result of a method of the
// client.
func NewList[T any](a *App, view View[T], list func(c *client.Client, ctx context.Context) ([]T, error)) *cobra.Command {
	return New(a, "list", NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return view.Show(a)(list(c, ctx))
	})
}

// NewChange returns a command that calls a method of the client for the thing
// which its only argument names, and reports it by done, a format for the
// argument. what names the argument.
func NewChange(a *App, use, what, done string, change func(c *client.Client, ctx context.Context, name string) error) *cobra.Command {
	return New(a, use, Arguments(1, 1, what), func(ctx context.Context, c *client.Client, args []string) error {
		return a.Done(change(c, ctx, args[0]), done, args[0])
	})
}

// NoArguments refuses arguments.
func NoArguments() cobra.PositionalArgs { return Arguments(0, 0, "") }

// Arguments checks the number of a command's arguments; what names them.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least && most == 1:
			return Misuse("%s needs %s", cmd.CommandPath(), what)
		case len(args) < least:
			return Misuse("%s needs at least %d argument(s): %s", cmd.CommandPath(), least, what)
		case most == 0 && len(args) > 0:
			return Misuse("%s takes no arguments, received %d", cmd.CommandPath(), len(args))
		case most >= 0 && len(args) > most:
			return Misuse("%s takes only %s, received %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

// Many is no upper bound of arguments.
const Many = -1
