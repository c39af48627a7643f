package setup

import (
	"cmp"
	"context"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Recover returns the command recover.
func Recover(a *command.App) *cobra.Command {
	var r fence.Recovery
	var apply, hold bool
	var by string
	cmd := command.NewLocal("recover", command.NoArguments(), func(ctx context.Context, _ []string) error {
		if who, err := user.Current(); by == "" && err == nil {
			by = cmp.Or(who.Name, who.Username)
		}
		if by == "" {
			return command.Misuse("--by is required: this machine has no name for its user")
		}
		r.By = envelope.Actor(by + " (on the database)")
		switch {
		case hold && (apply || r.Moved):
			return command.Misuse("--hold cannot be combined with --apply or --moved")
		case hold:
			err := a.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) error {
				return fence.HoldForMove(ctx, tx, r.By)
			})
			return a.Done(err, "The database is held. Stop all workers, then move it; open it at the new place with %s", "countersign recover --moved --apply")
		}
		return runRecover(ctx, a, r, apply)
	})
	flags := cmd.Flags()
	flags.BoolVar(&apply, "apply", false, "recover the database; without it, show what would be done")
	flags.BoolVar(&hold, "hold", false, "hold the database before it is moved")
	flags.BoolVar(&r.Moved, "moved", false, "open a database that was held before it was moved; nothing becomes unknown")
	flags.DurationVar(&r.AskFor, "ask-for", 24*time.Hour, "`duration` for which new actions of class once need a person")
	flags.StringVar(&by, "by", "", "the `name` of who recovers, for the record (default this machine's user)")
	return cmd
}

// recovered is the result of the command for scripts.
type recovered struct {
	fence.Plan
	Applied bool `json:"applied"`
}

func runRecover(ctx context.Context, a *command.App, r fence.Recovery, apply bool) error {
	var shown recovered
	err := a.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) (err error) {
		if apply {
			shown.Plan, shown.Applied, err = r.Apply(ctx, tx)
		} else {
			shown.Plan, err = r.Prepare(ctx, tx)
		}
		return err
	})
	if err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(shown)
	}
	return a.Print("%s", describeRecovery(shown, r, apply))
}

// describeRecovery describes what a recovery does, for people.
func describeRecovery(s recovered, r fence.Recovery, apply bool) string {
	if s.State != fence.StateHeld && !s.Applied {
		return fmt.Sprintf("The database %s is %s, and needs no recovery.\n", s.Database, s.State)
	}
	var b strings.Builder
	if !s.Applied {
		fmt.Fprintf(&b, "Held (%s): %s.\n", s.Reason, command.Safe(s.Detail))
	}
	fmt.Fprintf(&b, "The newest event is from %s. Later events are lost.\n\n", s.Newest.Format(time.RFC3339))
	for _, line := range []struct {
		n    int64
		what string
	}{
		{s.Unknown, "actions of class once become unknown: they may have been sent"},
		{s.Sendable, "actions of class once continue: no worker sent them"},
		{s.Later, "actions of class once continue: they are not due yet"},
		{s.Repeatable, "actions of other classes continue: repeating them is harmless"},
		{s.Approvals, "approvals of class once lose their votes: they may have been given before"},
		{s.Recorded, "calls that workers reported are recorded again"},
		{s.Lost, "calls were made whose actions are not here; their external ids are not sent again"},
		{s.Silent, "workers have not reported what they sent"},
	} {
		if line.n > 0 {
			fmt.Fprintf(&b, "%6d  %s\n", line.n, line.what)
		}
	}
	if !r.Moved {
		fmt.Fprintf(&b, "\nLater changes are lost: revocations, pauses, do-not-contact entries, policy changes,\n"+
			"logins and tokens. Repeat them before `countersign resume --everything`; new actions of class once need a person for %s.\n", r.AskFor)
	}
	switch {
	case s.Applied && r.Moved:
		fmt.Fprintf(&b, "\nRecovered as the database %s.\n", s.Database)
	case s.Applied:
		fmt.Fprintf(&b, "\nRecovered as the database %s, and paused.\n", s.Database)
	case apply:
		b.WriteString("\nReviews ask for two people: another database login applies the same within an hour.\n")
	default:
		b.WriteString("\nNothing was changed. Make sure that no other copy of this database is in use, then repeat with --apply.\n")
	}
	return b.String()
}
