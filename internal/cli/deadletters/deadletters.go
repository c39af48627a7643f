// Package deadletters has the commands that list, export, replay, resolve and
// discard dead letters.
package deadletters

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Command returns the command dlq, which is also called dead-letters.
func Command(a *command.App) *cobra.Command {
	cmd := command.NewGroup("dlq", list(a), summary(a), show(a), export(a), replay(a), resolve(a), discard(a))
	cmd.Aliases = []string{"dead-letters"}
	return cmd
}

// filterFlags adds the flags that select dead letters.
func filterFlags(cmd *cobra.Command, f *wire.DeadLetterFilter) {
	flags := cmd.Flags()
	command.EnumFlag(cmd, &f.Reason, "reason", "filter by `reason`: refused, exhausted or unknown",
		wire.ReasonRefused, wire.ReasonExhausted, wire.ReasonUnknown)
	flags.StringVar(&f.Source, "source", "", "filter by source `id`")
	command.ToolFlag(cmd, &f.Tool)
	flags.StringVar(&f.Code, "code", "", "filter by error `code` of the last attempt, such as timeout")
	command.RangeFlags(cmd, &f.Since, &f.Until, "actions that became dead letters")
}

func view() command.View[wire.DeadLetter] {
	return command.View[wire.DeadLetter]{
		Empty: "No matching dead letters.", Head: []string{"ID", "TOOL", "REASON", "TRIES", "SINCE", "WHY"},
		Row: func(l wire.DeadLetter) []string {
			return []string{
				l.ActionID.String(), l.Tool, l.Reason, fmt.Sprint(l.Attempts), command.Local(&l.At),
				strings.Trim(l.Code+": "+l.Message, ": "),
			}
		},
	}
}

func list(a *command.App) *cobra.Command {
	var f wire.DeadLetterFilter
	var all bool
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		if !all {
			return view().ShowPage(a)(c.DeadLetters(ctx, f))
		}
		f.Limit = 200
		var found []wire.DeadLetter
		for l, err := range client.Items(func(cursor string) (wire.Page[wire.DeadLetter], error) {
			f.Cursor = cmp.Or(cursor, f.Cursor)
			return c.DeadLetters(ctx, f)
		}) {
			if err != nil {
				return err
			}
			found = append(found, l)
		}
		return view().Show(a)(found, nil)
	})
	filterFlags(cmd, &f)
	cmd.Flags().BoolVar(&all, "all", false, "print every page")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

func summary(a *command.App) *cobra.Command {
	var f wire.DeadLetterFilter
	cmd := command.New(a, "summary", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		groups, err := c.DeadLetterSummary(ctx, f)
		return command.View[wire.DeadLetterGroup]{
			Empty: "No matching dead letters.", Head: []string{"TOOL", "REASON", "CODE", "COUNT", "OLDEST", "NEWEST"},
			Row: func(g wire.DeadLetterGroup) []string {
				count := fmt.Sprint(g.Count)
				if g.Capped {
					count += " or more"
				}
				return []string{g.Tool, g.Reason, g.Code, count, command.Local(&g.Oldest), command.Local(&g.Newest)}
			},
		}.Show(a)(groups, err)
	})
	filterFlags(cmd, &f)
	return cmd
}

func show(a *command.App) *cobra.Command {
	return command.New(a, "show ID", command.Arguments(1, 1, "an action id"), func(ctx context.Context, c *client.Client, args []string) error {
		ids, err := command.IDs(args)
		if err != nil {
			return err
		}
		return command.Show(a, showDetail)(c.DeadLetter(ctx, ids[0]))
	})
}

func showDetail(a *command.App, d wire.DeadLetterDetail) error {
	if err := view().Show(a)([]wire.DeadLetter{d.DeadLetter}, nil); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	if err := actions.ShowDetail(a, d.Action, d.Attempts); err != nil {
		return err
	}
	noteNext(a, d.DeadLetter)
	return nil
}

// noteNext prints the next commands for a dead letter.
func noteNext(a *command.App, l wire.DeadLetter) {
	if l.Reason != wire.ReasonUnknown {
		a.Note("To try it again: countersign dlq replay %s --apply", l.ActionID)
		return
	}
	if v := l.Reconciliation; v != nil {
		a.Note("Verified by %d reads; last result: %s.", v.Attempts, command.Line(cmp.Or(v.LastResult, "nothing yet")))
	}
	source, _, _ := strings.Cut(l.Tool, ":")
	a.Note("It is unknown whether it happened. Check %s, then record the result:", command.Line(source))
	a.Note("  countersign dlq resolve %s --happened (or --did-not) --note \"how you know\"", l.ActionID)
}

func resolve(a *command.App) *cobra.Command {
	var r wire.Resolution
	var didNot bool
	cmd := command.New(a, "resolve ID...", command.Arguments(1, command.Many, "one or more action ids"), func(ctx context.Context, c *client.Client, args []string) error {
		switch {
		case r.Happened == didNot:
			return command.Misuse("either --happened or --did-not is required")
		case r.Happened && r.GiveUp:
			return command.Misuse("--give-up requires --did-not")
		case r.Note == "":
			return command.Misuse("--note is required: how you found out, for the audit log")
		}
		return actions.Intended(actions.Each(ctx, a, args, 0, func(ctx context.Context, id envelope.ActionID) (wire.Action, error) {
			return c.Resolve(ctx, id, r)
		}))
	})
	cmd.Flags().BoolVar(&r.Happened, "happened", false, "the call had its effect")
	cmd.Flags().BoolVar(&didNot, "did-not", false, "the call had no effect; retry it")
	cmd.Flags().BoolVar(&r.GiveUp, "give-up", false, "with --did-not: do not retry")
	cmd.Flags().StringVar(&r.Note, "note", "", "how you found out, for the audit log (required)")
	return cmd
}

func export(a *command.App) *cobra.Command {
	var f wire.DeadLetterFilter
	cmd := command.New(a, "export", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		f.Limit = 100
		return command.Export(a, func(cursor string) (wire.Page[json.RawMessage], error) {
			f.Cursor = cursor
			return c.ExportDeadLetters(ctx, f)
		})
	})
	filterFlags(cmd, &f)
	return cmd
}

// selection is the dead letters that a command is about: by id, by filter, of
// which both must hold, or all.
type selection struct {
	filter wire.DeadLetterFilter
	from   string
	all    bool
	apply  bool
}

func (s *selection) flags(cmd *cobra.Command, verb string) {
	filterFlags(cmd, &s.filter)
	cmd.Flags().StringVar(&s.from, "from", "", "select the dead letters of an exported `file`, or - for standard input")
	cmd.Flags().BoolVar(&s.all, "all", false, verb+" every dead letter")
	cmd.Flags().BoolVar(&s.apply, "apply", false, "make the changes (default: a dry run)")
}

// ids returns the ids of the arguments or of the export; nil for neither.
func (s *selection) ids(a *command.App, args []string) ([]envelope.ActionID, error) {
	switch filtered := s.filter != (wire.DeadLetterFilter{}); {
	case len(args) == 0 && !filtered && !s.all && s.from == "":
		return nil, command.Misuse("nothing selected: give ids, --from, --all, or a filter such as --reason or --tool")
	case len(args) > 0 && s.from != "":
		return nil, command.Misuse("give ids or --from, not both")
	case s.all && (filtered || len(args) > 0 || s.from != ""):
		return nil, command.Misuse("--all cannot be combined with other selections; a filter alone selects all matches")
	case len(args) > 0:
		return command.IDs(args)
	case s.from == "":
		return nil, nil
	}
	in, err := a.Open(s.from)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	named, err := readExport(in)
	if err == nil && len(named) == 0 {
		err = command.Misuse("%s holds no dead letters", s.from)
	}
	return named, err
}

// change returns the change of the selection.
func (s *selection) change(a *command.App, verb string, args []string) (*bulkChange, error) {
	named, err := s.ids(a, args)
	return &bulkChange{app: a, verb: verb, named: named, typed: len(args) > 0, filter: s.filter, apply: s.apply}, err
}

// maxRate is the highest rate that the API takes.
const maxRate = 10000

func replay(a *command.App) *cobra.Command {
	var s selection
	var how wire.ReplayRequest
	cmd := command.New(a, "replay [ID...]", cobra.ArbitraryArgs, func(ctx context.Context, c *client.Client, args []string) error {
		ch, err := s.change(a, "replay", args)
		if err != nil {
			return err
		}
		ch.rate = how.PerSecond
		ch.do = func(ctx context.Context, in wire.BulkRequest, all bool) (wire.BulkResult, error) {
			how := how
			how.BulkRequest, how.AllowDuplicates = in, how.AllowDuplicates || all
			return c.Replay(ctx, how)
		}
		return ch.run(ctx)
	})
	s.flags(cmd, "replay")
	cmd.Flags().BoolVar(&how.AllowDuplicates, "allow-duplicates", false, "include dead letters whose effect may have happened already")
	command.Flag(cmd, "rate", "float", "actions that become due per second (default: all at once)", func(text string) (err error) {
		how.PerSecond, err = strconv.ParseFloat(text, 64)
		// Written so that NaN is refused, too. Zero would be all at once.
		if inRange := how.PerSecond >= 0.001 && how.PerSecond <= maxRate; err != nil || !inRange {
			return fmt.Errorf("must be from 0.001 to %d a second", maxRate)
		}
		return nil
	})
	cmd.Flags().StringVar(&how.Note, "note", "", "reason, for the audit log")
	return cmd
}

func discard(a *command.App) *cobra.Command {
	var s selection
	var note string
	cmd := command.New(a, "discard [ID...]", cobra.ArbitraryArgs, func(ctx context.Context, c *client.Client, args []string) error {
		if note == "" {
			return command.Misuse("--note is required: the reason, for the audit log")
		}
		ch, err := s.change(a, "discard", args)
		if err != nil {
			return err
		}
		ch.do = func(ctx context.Context, in wire.BulkRequest, _ bool) (wire.BulkResult, error) {
			return c.Discard(ctx, wire.DiscardRequest{BulkRequest: in, Reason: note})
		}
		return ch.run(ctx)
	})
	s.flags(cmd, "discard")
	cmd.Flags().StringVar(&note, "note", "", "reason, for the audit log (required)")
	return cmd
}

const (
	// maxLine bounds a line of an export, in bytes: arguments may be
	// envelope.MaxBytes long, and longer once they are redacted and escaped.
	maxLine = 4 << 20
	// maxBadLines bounds how many bad lines an error names.
	maxBadLines = 20
)

// readExport reads the ids of an export: an object with an action_id on
// every line. Empty lines and repeated ids are skipped.
// The error names every bad line by its number.
func readExport(in io.Reader) ([]envelope.ActionID, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	seen := make(map[envelope.ActionID]bool)
	var all []envelope.ActionID
	var bad []string
	number := 0
	for lines.Scan() {
		number++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		id, err := readLine(text)
		switch {
		case err != nil:
			bad = append(bad, fmt.Sprintf("line %d %v", number, err))
		case !seen[id]:
			seen[id] = true
			all = append(all, id)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		bad = append(bad, fmt.Sprintf("line %d is longer than %d MiB", number+1, maxLine>>20))
	} else if err != nil {
		return nil, fmt.Errorf("read the dead letters: %w", err)
	}
	if len(bad) == 0 {
		return all, nil
	}
	if more := len(bad) - maxBadLines; more > 0 {
		bad = append(bad[:maxBadLines], fmt.Sprintf("and %d more", more))
	}
	return nil, command.Misuse("nothing was done; invalid lines:\n  %s", strings.Join(bad, "\n  "))
}

// readLine returns the id of a line. Its error does not repeat the line.
func readLine(text []byte) (id envelope.ActionID, err error) {
	var fields map[string]json.RawMessage
	var name string
	switch {
	case !utf8.Valid(text):
		return id, errors.New("is not UTF-8")
	case json.Unmarshal(text, &fields) != nil || fields == nil:
		return id, errors.New("is not a JSON object")
	case fields["action_id"] == nil:
		return id, errors.New("has no action_id")
	case json.Unmarshal(fields["action_id"], &name) != nil || id.UnmarshalText([]byte(name)) != nil:
		return id, errors.New("has an action_id that is not an id")
	}
	return id, nil
}
