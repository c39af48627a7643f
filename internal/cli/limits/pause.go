package limits

import (
	"cmp"
	"context"
	"os/user"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// targetFlags select a target to pause, kill or resume.
type targetFlags struct {
	everything, tenant, travelling, dryRun     bool
	employee, source, bucket, tool, automation string
	reason, by                                 string
}

func (f *targetFlags) add(cmd *cobra.Command, why string) {
	flags := cmd.Flags()
	flags.BoolVar(&f.everything, "everything", false, "every tenant, in the database of "+command.DatabaseEnv)
	flags.BoolVar(&f.tenant, "tenant", false, "every action of the token's tenant")
	flags.StringVar(&f.employee, "employee-id", "", "actions of the employee with this `id`")
	flags.StringVar(&f.source, "source", "", "actions of the source with this `id`")
	flags.StringVar(&f.bucket, "bucket", "", "actions in the bucket with this `name`")
	flags.StringVar(&f.tool, "tool", "", "actions of this tool, as `source:name`")
	flags.StringVar(&f.automation, "automation", "", "actions of this automation: triage, triage/`account`, or an automation_id")
	flags.StringVar(&f.reason, "reason", "", why)
	flags.StringVar(&f.by, "by", "", "with --everything: your `name`, for the audit log (default: the user of this machine)")
}

// target returns the one target that was named.
func (f *targetFlags) target() (wire.Target, error) {
	var named []wire.Target
	for _, t := range []struct {
		given          bool
		scope, subject string
	}{
		{f.everything, "everything", ""}, {f.tenant, "tenant", ""}, {f.employee != "", "employee", f.employee},
		{f.source != "", "source", f.source}, {f.bucket != "", "bucket", f.bucket}, {f.tool != "", "tool", f.tool},
		{f.automation != "", "automation", f.automation},
	} {
		if t.given {
			named = append(named, wire.Target{Scope: t.scope, Subject: t.subject})
		}
	}
	if len(named) != 1 {
		return wire.Target{}, command.Misuse("one of --tool, --bucket, --source, --employee-id, --automation, --tenant and --everything is required")
	}
	return named[0], nil
}

// Pause returns the command pause.
func Pause(a *command.App) *cobra.Command {
	var f targetFlags
	cmd := command.NewLocal("pause", command.NoArguments(), func(ctx context.Context, _ []string) error {
		return runPause(ctx, a, f, false)
	})
	f.add(cmd, "reason, for people who find it paused (required)")
	dryRunFlag(cmd, &f)
	cmd.Flags().BoolVar(&f.travelling, "travelling", false, "with --automation: hold only what no person approved, and keep triage at level L2")
	cmd.AddCommand(pauseList(a))
	return cmd
}

// Kill returns the command kill.
func Kill(a *command.App) *cobra.Command {
	var f targetFlags
	cmd := command.NewLocal("kill", command.NoArguments(), func(ctx context.Context, _ []string) error {
		return runPause(ctx, a, f, true)
	})
	f.add(cmd, "reason, for people who find it killed (required)")
	dryRunFlag(cmd, &f)
	return cmd
}

func dryRunFlag(cmd *cobra.Command, f *targetFlags) {
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "count the actions of the target, and change nothing")
}

func runPause(ctx context.Context, a *command.App, f targetFlags, kill bool) error {
	of, err := f.target()
	if err != nil {
		return err
	}
	if f.dryRun {
		return forecast(ctx, a, of)
	}
	if f.reason == "" {
		return command.Misuse("--reason is required, for people who find it stopped")
	}
	if f.travelling && f.automation == "" {
		return command.Misuse("--travelling needs --automation")
	}
	var p wire.Pause
	inFlight := -1
	if f.everything {
		p, inFlight, err = pauseAll(ctx, a, kill, f)
	} else {
		var c *client.Client
		if c, err = a.Client(); err == nil {
			p, err = c.Pause(ctx, wire.PauseInput{Target: of, Kill: kill, Travelling: f.travelling, Reason: f.reason})
		}
	}
	if err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(p)
	}
	return showStop(a, of, p, kill, inFlight)
}

// forecast shows the actions that a pause of a target would hold, and a kill would end.
func forecast(ctx context.Context, a *command.App, of wire.Target) error {
	if of.Scope == pause.Everything {
		return command.Misuse("--dry-run counts the actions of one tenant; --everything is of all")
	}
	c, err := a.Client()
	if err != nil {
		return err
	}
	got, err := c.ForecastPause(ctx, of)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(got)
	}
	least := ""
	if got.AtLeast {
		least = "at least "
	}
	return a.Print("%s: %s%d pending, of these %d undecided; %s%d in flight go on\n", command.Line(targetText(of)), least, got.Pending+got.Undecided, got.Undecided, least, got.InFlight)
}

// showStop shows a pause, and when it is effective.
func showStop(a *command.App, of wire.Target, p wire.Pause, kill bool, inFlight int) error {
	what := "paused"
	switch {
	case p.Kill:
		what = "killed"
	case p.Travelling:
		what = "travelling"
	}
	err := a.Print("%s is %s, since %s by %s: %s\n", command.Line(targetText(of)), what, command.Local(&p.At), command.Line(p.By.Brief()), command.Line(p.Reason))
	if err != nil {
		return err
	}
	if p.Travelling {
		a.Note("Actions that no person approved wait; triage asks a person about everything.")
	} else {
		a.Note("Workers stop claiming its actions within a second.")
	}
	if inFlight >= 0 {
		a.Note("Workers hold %d action(s) now; those not sent yet are stopped within five seconds.", inFlight)
	}
	if kill {
		a.Note("Its pending actions are being skipped; `countersign pause list` shows the progress.")
	}
	a.Note("To resume: countersign resume %s", flagsOf(of))
	return nil
}

// flagsOf writes a target as flags.
func flagsOf(of wire.Target) string {
	flag := "--" + of.Scope
	if of.Scope == "employee" {
		flag += "-id"
	}
	return strings.TrimSpace(flag + " " + command.Line(of.Subject))
}

// targetText names a target for people.
func targetText(of wire.Target) string {
	if of.Scope == "tenant" {
		return "the tenant"
	}
	return strings.TrimSpace(of.Scope + " " + of.Subject)
}

// person returns the name of who pauses or resumes everything, for the record:
// that of --by, or that of this machine's user.
func (f *targetFlags) person() (string, error) {
	name := f.by
	if who, err := user.Current(); name == "" && err == nil {
		name = cmp.Or(who.Name, who.Username)
	}
	if name == "" {
		return "", command.Misuse("--by is required: the user name of this machine is unknown")
	}
	return name + " (on the database)", nil
}

// pauseAll pauses every tenant, and counts the actions that workers hold.
func pauseAll(ctx context.Context, a *command.App, kill bool, f targetFlags) (wire.Pause, int, error) {
	by, err := f.person()
	if err != nil {
		return wire.Pause{}, 0, err
	}
	var p wire.Pause
	inFlight := 0
	err = a.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) (err error) {
		if p, err = pause.SetEverything(ctx, tx, kill, f.reason, envelope.Actor(by)); err != nil {
			return err
		}
		inFlight, err = pause.InFlight(ctx, tx)
		return err
	})
	return p, inFlight, err
}

// Resume returns the command resume.
func Resume(a *command.App) *cobra.Command {
	var f targetFlags
	cmd := command.NewLocal("resume", command.NoArguments(), func(ctx context.Context, _ []string) error {
		of, err := f.target()
		if err != nil {
			return err
		}
		if f.everything {
			by, err := f.person()
			if err == nil {
				err = a.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) error {
					return pause.LiftEverything(ctx, tx, f.reason, envelope.Actor(by))
				})
			}
			return a.Done(err, "%s goes on", targetText(of))
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		return a.Done(c.Resume(ctx, of, f.reason), "%s goes on", targetText(of))
	})
	f.add(cmd, "reason, for the audit log")
	return cmd
}

func pauseList(a *command.App) *cobra.Command {
	var f client.PauseFilter
	var past bool
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		f.Active = !past
		return pauseView().ShowPage(a)(c.Pauses(ctx, f))
	})
	cmd.Flags().BoolVar(&past, "past", false, "include pauses that were lifted")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

func pauseView() command.View[wire.Pause] {
	return command.View[wire.Pause]{
		Empty: "Nothing is paused.", Head: []string{"WHAT", "STATE", "SINCE", "UNTIL", "BY", "ENDED", "WHY"},
		Row: func(p wire.Pause) []string {
			kind, ended := "paused", ""
			if p.Travelling {
				kind = "travelling"
			}
			if p.Kill {
				kind, ended = "killed", strconv.Itoa(p.Cancelled)
			}
			if p.LiftedAt != nil {
				kind += ", lifted"
			}
			return []string{targetText(p.Target), kind, command.Local(&p.At), command.Local(p.LiftedAt), p.By.Brief(), ended, p.Reason}
		},
	}
}
