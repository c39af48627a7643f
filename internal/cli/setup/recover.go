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

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	log "github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

type recoverFlags struct {
	apply, hold, moved, database bool
	askFor                       time.Duration
	by, head                     string
}

// Recover returns the command recover.
func Recover(a *command.App) *cobra.Command {
	f := recoverFlags{askFor: 24 * time.Hour}
	cmd := command.NewLocal("recover", command.NoArguments(), func(ctx context.Context, _ []string) error {
		if f.hold && (f.apply || f.moved || f.head != "") {
			return command.Misuse("--hold cannot be combined with --apply, --moved or --audit-head")
		}
		f.database = f.database || f.hold || f.moved
		var head *audit.Note
		if f.head != "" {
			note, err := audit.ReadNote(f.head)
			if err != nil {
				return err
			}
			head = &note
		}
		return runRecover(ctx, a, f, head)
	})
	flags := cmd.Flags()
	flags.BoolVar(&f.apply, "apply", false, "recover the database; without it, show what would be done")
	flags.BoolVar(&f.database, "database", false, "recover all tenants, in the database of "+command.DatabaseEnv)
	flags.BoolVar(&f.hold, "hold", false, "hold the database of "+command.DatabaseEnv+" before it is moved")
	flags.BoolVar(&f.moved, "moved", false, "open a database of "+command.DatabaseEnv+" that was held before it was moved; nothing becomes unknown")
	command.DurationFlag(cmd, &f.askFor, "ask-for", "`duration` for which new actions of classes once and keyed need a person").DefValue = "1d"
	flags.StringVar(&f.head, "audit-head", "", "show how far the audit log is behind the head in this `file`, of countersign audit head")
	flags.StringVar(&f.by, "by", "", "on the database: the `name` of who recovers, for the record (default this machine's user)")
	return cmd
}

// recovered is the result of the command for scripts.
type recovered struct {
	wire.Recovery
	Applied bool `json:"applied"`
}

func runRecover(ctx context.Context, a *command.App, f recoverFlags, head *audit.Note) error {
	var shown recovered
	var err error
	switch {
	case !f.database:
		shown, err = recoverByAPI(ctx, a, f, head)
	case f.hold:
		err = recoverDatabase(ctx, a, f, head, func(ctx context.Context, tx pgx.Tx, r fence.Recovery) error { return fence.HoldForMove(ctx, tx, r.By) })
		return a.Done(err, "The database is held. Stop all workers, then move it; open it at the new place with %s", "countersign recover --moved --apply")
	default:
		err = recoverDatabase(ctx, a, f, head, func(ctx context.Context, tx pgx.Tx, r fence.Recovery) (err error) {
			var p fence.Plan
			if f.apply {
				p, shown.Applied, err = r.Apply(ctx, tx)
			} else {
				p, err = r.Prepare(ctx, tx)
			}
			shown.Recovery = p.Recovery
			return err
		})
	}
	if err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(shown)
	}
	return a.Print("%s", describeRecovery(shown, f))
}

// recoverByAPI recovers the tenant of the token, if it is the only one.
func recoverByAPI(ctx context.Context, a *command.App, f recoverFlags, head *audit.Note) (shown recovered, err error) {
	c, err := a.Client()
	if err != nil {
		return shown, err
	}
	var noted *wire.AuditHead
	if head != nil {
		noted = &wire.AuditHead{Checkpoint: head.Checkpoint, Hash: head.Hash.String()}
	}
	if shown.Recovery, err = c.Recovery(ctx, noted); err != nil || !f.apply {
		return shown, err
	}
	shown.Recovery, err = c.Recover(ctx, shown.ETag, wire.RecoveryInput{AskFor: new(envelope.Duration(f.askFor))})
	shown.Applied = shown.State == string(fence.StateOpen)
	return shown, err
}

// recoverDatabase runs do in a transaction of the database of DATABASE_URL.
func recoverDatabase(ctx context.Context, a *command.App, f recoverFlags, head *audit.Note, do func(ctx context.Context, tx pgx.Tx, r fence.Recovery) error) error {
	if who, err := user.Current(); f.by == "" && err == nil {
		f.by = cmp.Or(who.Name, who.Username)
	}
	if f.by == "" {
		return command.Misuse("--by is required: this machine has no name for its user")
	}
	r := fence.Recovery{Moved: f.moved, AskFor: f.askFor, By: envelope.Actor(f.by + " (on the database)")}
	if head != nil {
		r.Tenant, r.Head = head.Tenant, log.Head{Checkpoint: head.Checkpoint, Hash: head.Hash}
	}
	return a.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) error { return do(ctx, tx, r) })
}

// describeRecovery describes the changes of a recovery, for people.
func describeRecovery(s recovered, f recoverFlags) string {
	if s.State != string(fence.StateHeld) && !s.Applied {
		return fmt.Sprintf("The database %s is %s, and needs no recovery.\n", s.Database, s.State)
	}
	var b strings.Builder
	if !s.Applied {
		fmt.Fprintf(&b, "Held (%s): %s.\n", s.Reason, command.Safe(s.Detail))
	}
	if s.Newest != nil {
		fmt.Fprintf(&b, "The newest event is from %s. Later events are lost.\n", s.Newest.Format(time.RFC3339))
	}
	if h := s.NotedHead; h != nil {
		b.WriteString(describeHead(*h))
	}
	b.WriteString("\n")
	for _, line := range []struct {
		n    int64
		what string
	}{
		{s.Unknown, "actions of class once become unknown: they may have been sent"},
		{s.Sendable, "actions of class once continue: no worker sent them"},
		{s.Later, "actions of class once continue: they are not due yet, or were proposed since"},
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
	b.WriteString(describeClasses(s))
	if !f.moved {
		fmt.Fprintf(&b, "\nLater changes are lost: revocations, pauses, do-not-contact entries, policy changes,\n"+
			"logins and tokens. Repeat them before `countersign resume %s`; new actions of classes once and keyed need a person for %s.\n",
			map[bool]string{true: "--everything", false: "--tenant"}[f.database], envelope.Duration(f.askFor))
	}
	switch {
	case s.Applied && f.moved:
		fmt.Fprintf(&b, "\nRecovered as the database %s.\n", s.Database)
	case s.Applied:
		fmt.Fprintf(&b, "\nRecovered as the database %s, and paused.\n", s.Database)
	case f.apply:
		b.WriteString("\nReviews ask for two people: another person applies the same within an hour.\n")
	default:
		b.WriteString("\nNothing was changed. Make sure that no other copy of this database is in use, then repeat with --apply.\n")
	}
	return b.String()
}

// describeHead describes how the audit log compares with a noted head.
func describeHead(h wire.RecoveryHead) string {
	switch h.Result {
	case "present":
		return fmt.Sprintf("The noted head %d is here: nothing until %s is lost.\n", h.Checkpoint, h.Until.Format(time.RFC3339))
	case "missing":
		return fmt.Sprintf("The audit log lacks %d checkpoints up to the noted head %d.\n", h.Missing, h.Checkpoint)
	}
	return fmt.Sprintf("The audit log has another checkpoint %d than the noted head: it is not of the same record.\n", h.Checkpoint)
}

// describeClasses describes the findings about the actions of each class.
func describeClasses(s recovered) string {
	var b strings.Builder
	for _, c := range s.Classes {
		var known []string
		for _, part := range []struct {
			n    int64
			what string
		}{
			{c.Unknown, "unknown"},
			{c.Reconcilable, "of these reconciled by a rule after the resume"},
			{c.Unknown - c.Reconcilable, "of these for a person"},
			{c.Continue, "continue"},
			{c.Recorded + c.Lost, "reported by workers"},
			{c.OpenAtHead, "had not ended at the noted head"},
		} {
			if part.n > 0 {
				known = append(known, fmt.Sprintf("%d %s", part.n, part.what))
			}
		}
		if len(known) > 0 {
			fmt.Fprintf(&b, "%12s: %s\n", c.Effect, strings.Join(known, ", "))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nBy class:\n" + b.String()
}
