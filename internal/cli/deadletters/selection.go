package deadletters

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// letterFilter is the flags that narrow a choice of dead letters.
type letterFilter struct {
	reason, source, tool, code string
	since, until               string
}

func (f *letterFilter) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.reason, "reason", "", "only those of this `reason`: refused, exhausted or unknown")
	flags.StringVar(&f.source, "source", "", "only those of the source of this `id`")
	flags.StringVar(&f.tool, "tool", "", "only those of the tool of this `name`")
	flags.StringVar(&f.code, "code", "", "only those whose last attempt came to this `word`, such as timeout")
	flags.StringVar(&f.since, "since", "", "only those made since this `time`: 24h ago, 2026-01-02 or 2026-01-02T03:04:05Z")
	flags.StringVar(&f.until, "until", "", "only those made before this `time`")
	command.Fixed(cmd, "reason", ReasonRefused, ReasonExhausted, ReasonUnknown)
}

// given says whether any flag narrows the choice.
func (f *letterFilter) given() bool { return *f != letterFilter{} }

// read checks the flags.
func (f *letterFilter) read() (client.LetterFilter, error) {
	out := client.LetterFilter{Reason: f.reason, Source: f.source, Tool: f.tool, Code: f.code}
	if err := command.OneOf("reason", f.reason, ReasonRefused, ReasonExhausted, ReasonUnknown); err != nil {
		return out, err
	}
	now := time.Now()
	var err error
	if out.Since, err = command.TimeFlag("since", f.since, now); err != nil {
		return out, err
	}
	if out.Until, err = command.TimeFlag("until", f.until, now); err != nil {
		return out, err
	}
	if !out.Until.IsZero() && !out.Since.Before(out.Until) {
		return out, command.Misuse("--until must be later than --since")
	}
	return out, nil
}

// selection says which dead letters a command is about: by id, by filter, both
// of which must hold then, or all.
type selection struct {
	filter letterFilter
	from   string
	all    bool
	apply  bool
}

func (s *selection) flags(cmd *cobra.Command, verb string) {
	s.filter.flags(cmd)
	cmd.Flags().StringVar(&s.from, "from", "", "those of an export, from a `file` or - for standard input")
	cmd.Flags().BoolVar(&s.all, "all", false, verb+" every dead letter")
	cmd.Flags().BoolVar(&s.apply, "apply", false, "do it; without this nothing changes")
}

// letters reads what is selected; ids is nil if none are named.
func letters(a *command.App, s *selection, args []string) (named []envelope.ActionID, f client.LetterFilter, err error) {
	switch filtered := s.filter.given(); {
	case len(args) == 0 && !filtered && !s.all && s.from == "":
		return nil, f, command.Misuse("say which: ids, --from, --all, or a filter such as --reason or --tool")
	case len(args) > 0 && s.from != "":
		return nil, f, command.Misuse("give ids or --from, not both")
	case s.all && (filtered || len(args) > 0 || s.from != ""):
		return nil, f, command.Misuse("--all stands alone; with a filter every one that fits is meant anyway")
	}
	if f, err = s.filter.read(); err != nil {
		return nil, f, err
	}
	if s.from == "" {
		if len(args) > 0 {
			named, err = command.Ids(args)
		}
		return named, f, err
	}
	in, err := a.Open(s.from)
	if err != nil {
		return nil, f, err
	}
	defer func() { _ = in.Close() }()
	if named, err = readLetterFile(in); err == nil && len(named) == 0 {
		err = command.Misuse("%s holds no dead letters", s.from)
	}
	return named, f, err
}
