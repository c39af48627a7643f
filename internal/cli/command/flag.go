package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

const (
	// maxWait is the longest time that the API waits.
	maxWait = 5 * time.Minute
	// maxPage is the largest page that the API returns.
	maxPage = 200
)

// value is a flag that a function reads. Its error completes a sentence that
// begins with the flag.
type value struct {
	text, kind string
	set        func(text string) error
}

// String returns the text that was set.
func (v *value) String() string { return v.text }

// Type names the kind of value in the help.
func (v *value) Type() string { return v.kind }

// Set reads the flag.
func (v *value) Set(text string) error {
	v.text = text
	return v.set(text)
}

// Flag adds a flag that a function reads.
func Flag(cmd *cobra.Command, name, kind, about string, set func(text string) error) *pflag.Flag {
	return cmd.Flags().VarPF(&value{kind: kind, set: set}, name, "", about)
}

// EnumFlag adds a flag that is one of a few words.
func EnumFlag[T ~string](cmd *cobra.Command, p *T, name, about string, words ...string) {
	Flag(cmd, name, "string", about, func(text string) error {
		*p = T(text)
		return oneOf(text, words...)
	})
	// The only errors are a flag that does not exist, or was offered values
	// before; a test asks for completions.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// WordsFlag adds a flag that takes several of some words, with commas between.
func WordsFlag[T ~string](cmd *cobra.Command, p *[]T, name, about string, words ...string) {
	Flag(cmd, name, "strings", about, func(text string) error {
		*p = nil
		for word := range strings.SplitSeq(text, ",") {
			if err := oneOf(word, words...); err != nil {
				return err
			}
			*p = append(*p, T(word))
		}
		return nil
	})
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

func oneOf(text string, words ...string) error {
	if text == "" || slices.Contains(words, text) {
		return nil
	}
	last := len(words) - 1
	return fmt.Errorf("must be %s or %s", strings.Join(words[:last], ", "), words[last])
}

// RiskFlag adds the flag --risk with the risks of envelopes.
func RiskFlag(cmd *cobra.Command, p *envelope.Risk, about string) {
	EnumFlag(cmd, p, "risk", about, "low", "medium", "high")
}

// WaitFlag adds --wait, which may stand without a value.
func WaitFlag(cmd *cobra.Command, d *time.Duration, about string) {
	flag := Flag(cmd, "wait", "duration", about+"; at most 5m", func(text string) (err error) {
		if *d, err = time.ParseDuration(text); err != nil || *d < time.Millisecond || *d > maxWait {
			return errors.New("must be a duration from 1ms to 5m, such as 30s; mind the equals sign: --wait=30s")
		}
		return nil
	})
	flag.NoOptDefVal = "30s"
}

// PageFlags adds the flags of a page of a list.
func PageFlags(cmd *cobra.Command, limit *int, cursor *string) {
	*limit = 50
	LimitFlag(cmd, limit, maxPage, "items per page, at most 200")
	cmd.Flags().StringVar(cursor, "cursor", "", "cursor of the next page, as printed by the previous one")
}

// LimitFlag adds --limit, a number from 1 to most. Its default is that of n.
func LimitFlag(cmd *cobra.Command, n *int, most int, about string) {
	flag := Flag(cmd, "limit", "int", about, func(text string) (err error) {
		if *n, err = strconv.Atoi(text); err != nil || *n < 1 || *n > most {
			return fmt.Errorf("must be from 1 to %d", most)
		}
		return nil
	})
	flag.DefValue = strconv.Itoa(*n)
}

// PositiveFlag adds a flag that is a number from 1 on. Zero is an error: for no
// limit the flag is left out.
func PositiveFlag(cmd *cobra.Command, n *int, name, about string) {
	Flag(cmd, name, "int", about, func(text string) (err error) {
		if *n, err = strconv.Atoi(text); err != nil || *n < 1 {
			return errors.New("must be 1 or more; omit it for no limit, or use `countersign pause` to stop everything")
		}
		return nil
	})
}

// LifetimeFlag adds a flag that is a duration and not zero, which would mean
// without an end, as the flag's absence may.
func LifetimeFlag[D ~int64](cmd *cobra.Command, d *D, name, about string) {
	Flag(cmd, name, "duration", about, func(text string) error {
		parsed, err := envelope.ParseDuration(text)
		if err != nil || parsed <= 0 {
			return errors.New("must be a duration above zero, such as 15m, 2h or 1d")
		}
		*d = D(parsed)
		return nil
	})
}

// DurationFlag adds a flag that is a duration, also in days.
func DurationFlag[D ~int64](cmd *cobra.Command, d *D, name, about string) *pflag.Flag {
	return Flag(cmd, name, "duration", about, func(text string) error {
		parsed, err := envelope.ParseDuration(text)
		if err != nil && text != "" {
			return errors.New("must be a duration such as 90s, 15m, 2h or 1d")
		}
		*d = D(parsed)
		return nil
	})
}

// PastFlag adds a flag that is a time, a day in the local zone, or how long
// ago a time was.
func PastFlag(cmd *cobra.Command, t *time.Time, name, about string) {
	Flag(cmd, name, "time", about, func(text string) (err error) {
		*t, err = parsePast(text, time.Now())
		return err
	})
}

func parsePast(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if at, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return at, nil
	}
	if ago, err := envelope.ParseDuration(text); err == nil {
		return now.Add(-time.Duration(ago)), nil
	}
	return time.Time{}, errors.New("must be a time such as 2026-01-02T03:04:05Z, a day such as 2026-01-02, or a duration ago, such as 24h")
}

// RangeFlags adds --since and --until. A command whose --until is not later ends
// with an error.
func RangeFlags(cmd *cobra.Command, since, until *time.Time, what string) {
	PastFlag(cmd, since, "since", "only "+what+" since this `time`: 24h, 2026-01-02 or 2026-01-02T03:04:05Z")
	PastFlag(cmd, until, "until", "only "+what+" before this `time`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if !until.IsZero() && !since.Before(*until) {
			return Misuse("--until must be later than --since")
		}
		return nil
	}
}

// FutureFlag adds a flag that is a time, or how long from now a time is.
func FutureFlag(cmd *cobra.Command, t *time.Time, name, about string) {
	Flag(cmd, name, "time", about, func(text string) (err error) {
		*t, err = parseFuture(text, time.Now())
		return err
	})
}

func parseFuture(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	d, err := envelope.ParseDuration(text)
	if err != nil || d <= 0 {
		return time.Time{}, errors.New("must be a time such as 2026-01-31T08:00:00Z, or a duration from now, such as 90s, 15m or 2h")
	}
	return now.Add(time.Duration(d)), nil
}

// EmployeeFlag adds --employee-id.
func EmployeeFlag(cmd *cobra.Command, id *envelope.EmployeeID, about string) {
	Flag(cmd, "employee-id", "string", about, func(text string) error {
		if text != "" && id.UnmarshalText([]byte(text)) != nil {
			return errors.New("must be an id of 36 characters")
		}
		return nil
	})
}

// IDFlag adds a flag that is an id.
func IDFlag(cmd *cobra.Command, p *string, name, about string) {
	Flag(cmd, name, "string", about, func(text string) error {
		*p = text
		if text != "" && uuid.Validate(text) != nil {
			return errors.New("must be an id of 36 characters")
		}
		return nil
	})
}

// AutomationFlag adds --automation.
func AutomationFlag(cmd *cobra.Command, id *string, about string) {
	cmd.Flags().StringVar(id, "automation", "", about)
}

// oldNames gives flags that were renamed their names of today.
func oldNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "automation-id" {
		name = "automation"
	}
	return pflag.NormalizedName(name)
}

// ScopeFlags adds --session-id, --employee-id and --automation. verb begins
// their help, such as "limit to".
func ScopeFlags(cmd *cobra.Command, session *string, employee *envelope.EmployeeID, automation *string, verb string) {
	cmd.Flags().StringVar(session, "session-id", "", verb+" this `session`")
	EmployeeFlag(cmd, employee, verb+" the employee with this `id`")
	AutomationFlag(cmd, automation, verb+" this `automation`")
}

// JSONFlag adds a flag that holds JSON, or names with @ a file that does; "@-"
// is standard input. The value is not repeated in an error, since it may be a
// secret.
func (a *App) JSONFlag(cmd *cobra.Command, p *json.RawMessage, name, about string) {
	Flag(cmd, name, "json", about, func(text string) (err error) {
		if text == "" {
			*p = nil
			return nil
		}
		*p, err = a.JSONText(text)
		return err
	})
}

// JSONText reads JSON, or the file that is named with @.
func (a *App) JSONText(text string) (json.RawMessage, error) {
	raw, err := a.fileText(text, envelope.MaxBytes+1)
	if err == nil && !json.Valid([]byte(raw)) {
		err = errors.New(`must be a JSON object such as '{"id":"4711"}', or @ and the name of a file that holds one; mind the shell's quotes`)
	}
	return json.RawMessage(raw), err
}

// TextFlag adds a flag that is a text, or names with @ a file that holds it.
func (a *App) TextFlag(cmd *cobra.Command, p *string, name, about string) {
	const limit = 64 << 10
	Flag(cmd, name, "text", about, func(text string) error {
		raw, err := a.fileText(text, limit)
		*p = strings.TrimRight(raw, "\r\n")
		return err
	})
}

// fileText returns a text, or the contents of the file that it names with @.
func (a *App) fileText(text string, limit int64) (string, error) {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return text, nil
	}
	raw, err := a.ReadFile(name, limit)
	return string(raw), err
}

// ReadFile returns up to limit bytes of a file, or of standard input for "-".
func (a *App) ReadFile(name string, limit int64) ([]byte, error) {
	in, err := a.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	raw, err := io.ReadAll(io.LimitReader(in, limit))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return raw, nil
}

// Open opens a file, or standard input for "-".
func (a *App) Open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.In), nil
	}
	f, err := os.Open(name)
	if p, ok := errors.AsType[*os.PathError](err); ok {
		err = p.Err
	}
	if err != nil {
		return nil, Misuse("%s cannot be read: %v", name, err)
	}
	return f, nil
}

// IDs reads arguments that name actions.
func IDs(args []string) ([]envelope.ActionID, error) {
	all := make([]envelope.ActionID, len(args))
	for i, text := range args {
		if err := all[i].UnmarshalText([]byte(text)); err != nil {
			return nil, Misuse("argument %d is not the id of an action, which has 36 characters; `countersign list` shows them", i+1)
		}
	}
	return all, nil
}

// ModeArgument reads an argument that is a mode.
func ModeArgument(text string) (envelope.Mode, error) {
	if mode := envelope.Mode(text); mode.Valid() {
		return mode, nil
	}
	return "", Misuse("the mode must be allow, require_approval or deny")
}

// ToolFlag adds the flag --tool, which narrows a list to the tools of a name or
// a pattern.
func ToolFlag(cmd *cobra.Command, pattern *string) {
	Flag(cmd, "tool", "string", "filter by tool `name`, optionally with its source: source:name", func(text string) error {
		if text != "" && text != "*" && !strings.Contains(text, ":") {
			text = "*:" + text
		}
		*pattern = text
		return nil
	})
}

// ToolArgument reads an argument that names one tool, as source:name.
func ToolArgument(text string) (policy.Key, error) {
	key, err := policy.ParseKey(text)
	if err != nil {
		return key, Misuse("invalid tool: write it as source:name")
	}
	return key, nil
}

// Argument returns an argument that may be left out.
func Argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// EmployeeName shows for whom a setting is; the zero id is everybody.
func EmployeeName(id envelope.EmployeeID) string {
	if id == (envelope.EmployeeID{}) {
		return "everybody"
	}
	return id.String()
}

// flagError returns an error of a flag of a command without its value, which
// may be a secret, and with the nearest names for one that is unknown.
func flagError(cmd *cobra.Command, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return Misuse("--%s %v", bad.GetFlag().Name, cmp.Or(bad.Unwrap(), err))
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return Misuse("%v%s", err, fault.Suggestion(nearestFlags(cmd, cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()))))
	}
	return Misuse("%v", err)
}

// nearestFlags returns the flags of a command that a misspelt name may stand
// for.
func nearestFlags(cmd *cobra.Command, name string) []string {
	var known []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { // those of all commands among them, once flags are parsed
		if !flag.Hidden {
			known = append(known, flag.Name)
		}
	})
	near := fault.Nearest(name, known)
	for i := range near {
		near[i] = "--" + near[i]
	}
	return near
}
