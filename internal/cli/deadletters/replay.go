package deadletters

import (
	"bufio"
	"bytes"
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
	"github.com/countersign-dev/countersign/internal/cli/command"
)

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
	cmd.Flags().StringVar(&s.from, "from", "", "those of an export, from a `file` or - for standard input")
	cmd.Flags().BoolVar(&s.all, "all", false, verb+" every dead letter")
	cmd.Flags().BoolVar(&s.apply, "apply", false, "do it; without this nothing changes")
}

// ids returns the ids of the arguments or of the export; nil for neither.
func (s *selection) ids(a *command.App, args []string) ([]envelope.ActionID, error) {
	switch filtered := s.filter != (wire.DeadLetterFilter{}); {
	case len(args) == 0 && !filtered && !s.all && s.from == "":
		return nil, command.Misuse("say which: ids, --from, --all, or a filter such as --reason or --tool")
	case len(args) > 0 && s.from != "":
		return nil, command.Misuse("give ids or --from, not both")
	case s.all && (filtered || len(args) > 0 || s.from != ""):
		return nil, command.Misuse("--all takes no other selection; with a filter every one that fits is meant anyway")
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

// change returns the change of what is selected.
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
	cmd.Flags().BoolVar(&how.AllowDuplicates, "allow-duplicates", false, "also those that may have had their effect already")
	command.Flag(cmd, "rate", "float", "how many become due in a second (default all at once)", func(text string) (err error) {
		how.PerSecond, err = strconv.ParseFloat(text, 64)
		// Written so that NaN is refused, too. Zero would be all at once.
		if inRange := how.PerSecond >= 0.001 && how.PerSecond <= maxRate; err != nil || !inRange {
			return fmt.Errorf("must be from 0.001 to %d a second", maxRate)
		}
		return nil
	})
	cmd.Flags().StringVar(&how.Note, "note", "", "why, for the record")
	return cmd
}

func discard(a *command.App) *cobra.Command {
	var s selection
	var note string
	cmd := command.New(a, "discard [ID...]", cobra.ArbitraryArgs, func(ctx context.Context, c *client.Client, args []string) error {
		if note == "" {
			return command.Misuse("--note must say why, for the record")
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
	cmd.Flags().StringVar(&note, "note", "", "why, for the record (required)")
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
	return nil, command.Misuse("nothing was done, because of bad lines:\n  %s", strings.Join(bad, "\n  "))
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
