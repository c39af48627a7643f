package cli

import (
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
)

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
func (a *app) letters(s *selection, args []string) (named []envelope.ActionID, f client.LetterFilter, err error) {
	switch filtered := s.filter.given(); {
	case len(args) == 0 && !filtered && !s.all && s.from == "":
		return nil, f, misuse("say which: ids, --from, --all, or a filter such as --reason or --tool")
	case len(args) > 0 && s.from != "":
		return nil, f, misuse("give ids or --from, not both")
	case s.all && (filtered || len(args) > 0 || s.from != ""):
		return nil, f, misuse("--all stands alone; with a filter every one that fits is meant anyway")
	}
	if f, err = s.filter.read(); err != nil {
		return nil, f, err
	}
	if s.from == "" {
		if len(args) > 0 {
			named, err = ids(args)
		}
		return named, f, err
	}
	in, err := a.open(s.from)
	if err != nil {
		return nil, f, err
	}
	defer func() { _ = in.Close() }()
	if named, err = readLetterFile(in); err == nil && len(named) == 0 {
		err = misuse("%s holds no dead letters", s.from)
	}
	return named, f, err
}
