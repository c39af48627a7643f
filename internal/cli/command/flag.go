package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// MaxPage is the largest page that the API gives.
const MaxPage = 200

// maxWait is the longest that the API lets anybody wait.
const maxWait = 5 * time.Minute

// WaitFlag adds --wait, which may stand without a value.
func WaitFlag(cmd *cobra.Command, d *time.Duration, about string) {
	flag := cmd.Flags().VarPF((*waiting)(d), "wait", "", about+"; at most 5m")
	flag.DefValue = ""
	flag.NoOptDefVal = "30s"
}

// waiting is a duration that the API accepts.
type waiting time.Duration

// String writes the duration; none is empty.
func (w *waiting) String() string {
	if *w == 0 {
		return ""
	}
	return time.Duration(*w).String()
}

// Type names the kind of value in the help.
func (*waiting) Type() string { return "duration" }

// Set reads a duration.
func (w *waiting) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Millisecond || d > maxWait {
		return fmt.Errorf("must be a duration from 1ms to 5m, such as 30s; mind the equals sign: --wait=30s")
	}
	*w = waiting(d)
	return nil
}

// Fixed offers the values of a flag to the shell's completion.
func Fixed(cmd *cobra.Command, flag string, values ...string) {
	// The only errors are a flag that is not there, or was offered values
	// before; a test asks for completions.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// OneOf refuses a flag's value that is none of a few words.
func OneOf(flag, value string, words ...string) error {
	if value == "" {
		return nil
	}
	for _, w := range words {
		if value == w {
			return nil
		}
	}
	return Misuse("--%s must be %s", flag, strings.Join(words, ", "))
}

// Ids reads arguments that name actions.
func Ids(args []string) ([]envelope.ActionID, error) {
	all := make([]envelope.ActionID, len(args))
	for i, text := range args {
		if err := all[i].UnmarshalText([]byte(text)); err != nil {
			return nil, Misuse("argument %d is not the id of an action, which has 36 characters; `countersign list` shows them", i+1)
		}
	}
	return all, nil
}

// ReadArgs replaces @FILE by what the file holds.
func (a *App) ReadArgs(args string) (string, error) {
	name, ok := strings.CutPrefix(args, "@")
	if !ok {
		return args, nil
	}
	in, err := a.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }()
	text, err := io.ReadAll(io.LimitReader(in, envelope.MaxBytes+1))
	if err != nil {
		return "", fmt.Errorf("read the arguments: %w", err)
	}
	return string(text), nil
}

// JsonFlag reads what a flag holds as JSON, or in the file that it names with
// an @ before; nil for nothing. What it read is not repeated in the error,
// since it may be a secret.
func (a *App) JsonFlag(flag, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	raw := []byte(text)
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		in, err := a.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = in.Close() }()
		if raw, err = io.ReadAll(io.LimitReader(in, envelope.MaxBytes+1)); err != nil {
			return nil, fmt.Errorf("read --%s: %w", flag, err)
		}
	}
	if !json.Valid(raw) {
		return nil, Misuse("--%s must hold a JSON object, or @ and the name of a file that does", flag)
	}
	return raw, nil
}

// TimeFlag reads a time, a day that begins where the user is, or how long ago
// it was. Nothing is the zero time.
func TimeFlag(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if at, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return at, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, Misuse("--%s must be a time such as 2026-01-02T03:04:05Z, a day such as 2026-01-02, or how long ago it was, such as 24h", flag)
}

// ModeWord reads a mode.
func ModeWord(text string) (envelope.Mode, error) {
	if mode := envelope.Mode(text); mode.Valid() {
		return mode, nil
	}
	return "", Misuse("the mode must be allow, require_approval or deny")
}

// EmployeeFlag reads an employee's id; nothing is the zero id.
func EmployeeFlag(text string) (envelope.EmployeeID, error) {
	if text == "" {
		return envelope.EmployeeID{}, nil
	}
	id, err := limits.ParseEmployee(text)
	if err != nil || id == (envelope.EmployeeID{}) {
		return id, Misuse("--employee must be an id of 36 characters")
	}
	return id, nil
}

// EmployeeName shows whom something is for; the zero id is everybody.
func EmployeeName(id envelope.EmployeeID) string {
	if id == (envelope.EmployeeID{}) {
		return "everybody"
	}
	return id.String()
}

// maxText bounds what is read of a file that a flag names.
const maxText = 64 << 10

// TextFlag is what a flag holds, or the text of the file that it names with an
// @ before, without the end of its last line.
func (a *App) TextFlag(flag, text string) (string, error) {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return text, nil
	}
	in, err := a.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = in.Close() }()
	raw, err := io.ReadAll(io.LimitReader(in, maxText))
	if err != nil {
		return "", fmt.Errorf("read --%s: %w", flag, err)
	}
	return strings.TrimRight(string(raw), "\r\n"), nil
}

// Argument is one that may be left out.
func Argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// Open opens a file, or standard input for "-".
func (a *App) Open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.In), nil
	}
	f, err := os.Open(name) // the user named it
	if err != nil {
		return nil, Misuse("%s cannot be read: %v", name, pathCause(err))
	}
	return f, nil
}

func pathCause(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// Moment reads a time, or how long from now it is.
func Moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return time.Time{}, Misuse("--%s must be a time such as 2026-01-31T08:00:00Z, or how long from now, such as 90s, 15m or 2h", flag)
	}
	return now.Add(d), nil
}

// ToolKey reads the key of one tool, as source:name.
func ToolKey(text string) (policy.Key, error) {
	key, err := policy.ParseKey(text)
	if err != nil {
		return key, Misuse("the argument must be a tool, as source:name")
	}
	return key, nil
}
