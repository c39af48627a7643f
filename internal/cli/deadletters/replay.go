package deadletters

import (
	"context"
	"fmt"
	"strconv"

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
	check  func() error
	from   string
	all    bool
	apply  bool
}

func (s *selection) flags(cmd *cobra.Command, verb string) {
	s.check = filterFlags(cmd, &s.filter)
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
	if err := s.check(); err != nil {
		return nil, err
	}
	named, err := s.ids(a, args)
	return &bulkChange{app: a, verb: verb, named: named, typed: len(args) > 0, filter: s.filter, apply: s.apply}, err
}

// maxRate is the highest rate that the API takes.
const maxRate = 10000

func replay(a *command.App) *cobra.Command {
	var s selection
	var how wire.ReplayRequest
	cmd := &cobra.Command{
		Use: "replay [ID...]",
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			ch, err := s.change(a, "replay", args)
			if err != nil {
				return err
			}
			ch.rate = how.PerSecond
			ch.do = func(ctx context.Context, in wire.BulkRequest) (wire.BulkResult, error) {
				how := how
				how.BulkRequest = in
				return c.Replay(ctx, how)
			}
			ch.all = func(ctx context.Context, in wire.BulkRequest) (wire.BulkResult, error) {
				how := how
				how.BulkRequest, how.AllowDuplicates = in, true
				return c.Replay(ctx, how)
			}
			return ch.run(ctx)
		}),
	}
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
	cmd := &cobra.Command{
		Use: "discard [ID...]",
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if note == "" {
				return command.Misuse("--note must say why, for the record")
			}
			ch, err := s.change(a, "discard", args)
			if err != nil {
				return err
			}
			ch.do = func(ctx context.Context, in wire.BulkRequest) (wire.BulkResult, error) {
				return c.Discard(ctx, wire.DiscardRequest{BulkRequest: in, Reason: note})
			}
			return ch.run(ctx)
		}),
	}
	s.flags(cmd, "discard")
	cmd.Flags().StringVar(&note, "note", "", "why, for the record (required)")
	return cmd
}
