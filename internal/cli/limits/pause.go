package limits

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
)

// targetFlags say what is paused, killed or resumed.
type targetFlags struct {
	everything, tenant             bool
	employee, source, bucket, tool string
	reason                         string
}

func (f *targetFlags) add(cmd *cobra.Command, why string) {
	flags := cmd.Flags()
	flags.BoolVar(&f.everything, "everything", false, "every tenant, in the database of "+command.DatabaseEnv)
	flags.BoolVar(&f.tenant, "tenant", false, "everything of the token's tenant")
	flags.StringVar(&f.employee, "employee", "", "the employee of this `id`")
	flags.StringVar(&f.source, "source", "", "the source of this `id`, with all its tools")
	flags.StringVar(&f.bucket, "bucket", "", "the bucket of this `name`")
	flags.StringVar(&f.tool, "tool", "", "one tool, as `source:name`")
	flags.StringVar(&f.reason, "reason", "", why)
}

// one returns the one target that was named.
func (f *targetFlags) one() (pause.Target, error) {
	var named []pause.Target
	for _, t := range []struct {
		given bool
		of    pause.Target
	}{
		{f.everything, pause.Target{Scope: pause.Everything}},
		{f.tenant, pause.Target{Scope: pause.Tenant}},
		{f.employee != "", pause.Target{Scope: pause.Employee, Subject: f.employee}},
		{f.source != "", pause.Target{Scope: pause.Source, Subject: f.source}},
		{f.bucket != "", pause.Target{Scope: pause.Bucket, Subject: f.bucket}},
		{f.tool != "", pause.Target{Scope: pause.Tool, Subject: f.tool}},
	} {
		if t.given {
			named = append(named, t.of)
		}
	}
	if len(named) != 1 {
		return pause.Target{}, command.Misuse("say what: one of --tool, --bucket, --source, --employee, --tenant and --everything")
	}
	if err := named[0].Validate(); err != nil {
		return pause.Target{}, command.Misuse("%s: %s", named[0].Scope, command.FieldsText(err))
	}
	return named[0], nil
}

const pauseHelp = `Pause something: nothing of it is sent until "countersign resume". What is
pending stays pending, and what is proposed meanwhile waits too. Workers keep to
it from their next look on, which is within a second; a call that is on its way
comes to its end.

It takes an operator's token. --everything is for whoever runs the fleet: it
works on the database of DATABASE_URL itself, for every tenant.`

// Pause returns the command pause.
func Pause(a *command.App) *cobra.Command {
	var f targetFlags
	cmd := &cobra.Command{
		Use:   "pause",
		Short: "Pause a tool, a bucket, a source, an employee or everything",
		Long:  pauseHelp,
		Example: `  countersign pause --tool mail:send_email --reason "the template is wrong"
  countersign pause --tenant --reason "moving house"
  countersign pause list`,
		Args: command.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPause(cmd.Context(), a, f, false) },
	}
	f.add(cmd, "why, for whoever finds it paused (required)")
	cmd.AddCommand(pauseList(a))
	return cmd
}

const killHelp = `Kill something: pause it, and end what is pending of it. What was proposed up to
now and has not been sent is skipped for good, in the background; a call that is
on its way comes to its end. What is proposed afterwards waits until
"countersign resume". What was ended stays so.

It is done at once. It takes an operator's token; --everything works on the
database of DATABASE_URL itself, for every tenant.`

// Kill returns the command kill.
func Kill(a *command.App) *cobra.Command {
	var f targetFlags
	cmd := &cobra.Command{
		Use:   "kill",
		Short: "Pause something, and end what is pending of it",
		Long:  killHelp,
		Example: `  countersign kill --employee 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --reason "it writes to the wrong people"
  countersign kill --everything --reason "the model went mad"`,
		Args: command.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPause(cmd.Context(), a, f, true) },
	}
	f.add(cmd, "why, for whoever finds it killed (required)")
	return cmd
}

func runPause(ctx context.Context, a *command.App, f targetFlags, kill bool) error {
	of, err := f.one()
	if err != nil {
		return err
	}
	if f.reason == "" {
		return command.Misuse("--reason is required: whoever finds it stopped will ask")
	}
	var p pause.Pause
	flights := -1
	if f.everything {
		p, flights, err = pauseAll(ctx, a, kill, f.reason)
	} else {
		var c *client.Client
		if c, err = a.Client(); err == nil {
			p, err = c.Pause(ctx, of, kill, f.reason)
		}
	}
	if err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(p)
	}
	return showStop(a, of, p, kill, flights)
}

// showStop says what stands, and when it is effective.
func showStop(a *command.App, of pause.Target, p pause.Pause, kill bool, flights int) error {
	what := "paused"
	if p.Kill {
		what = "killed"
	}
	if _, err := fmt.Fprintf(a.Out, "%s is %s, since %s by %s: %s\n", command.Line(of.String()), what, command.Local(&p.At), command.Line(p.By), command.Line(p.Reason)); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	a.Note("It holds now: workers claim nothing of it from their next look on, within a second.")
	if flights >= 0 {
		a.Note("Workers hold %d action(s) at this moment; what of them has not been sent is stopped within five seconds.", flights)
	}
	if kill {
		a.Note("What is pending of it is being ended; `countersign pause list` counts it.")
	}
	a.Note("To go on: countersign resume %s", flagsOf(of))
	return nil
}

// flagsOf writes a target as flags.
func flagsOf(of pause.Target) string {
	if of.Subject == "" {
		return "--" + string(of.Scope)
	}
	return "--" + string(of.Scope) + " " + command.Line(of.Subject)
}

// fleetOperator is who does what is done in the database itself.
func fleetOperator(a *command.App) string {
	return "fleet operator " + cmp.Or(a.Getenv("USER"), "unknown")
}

// pauseAll pauses every tenant, and counts what workers hold.
func pauseAll(ctx context.Context, a *command.App, kill bool, reason string) (p pause.Pause, flights int, err error) {
	return p, flights, a.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) (err error) {
		if p, err = pause.SetEverything(ctx, tx, kill, reason, fleetOperator(a)); err != nil {
			return err
		}
		flights, err = pause.Flights(ctx, tx)
		return err
	})
}

// Resume returns the command resume.
func Resume(a *command.App) *cobra.Command {
	var f targetFlags
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Let go on what is paused or killed",
		Long: `Let go on what is paused or killed. What it held is sent again, within seconds,
as the limits allow. What a kill ended stays ended.`,
		Example: `  countersign resume --tool mail:send_email --reason "the template is right now"
  countersign resume --everything`,
		Args: command.Arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			of, err := f.one()
			if err != nil {
				return err
			}
			if f.everything {
				err = a.InDatabase(cmd.Context(), "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) error {
					return pause.LiftEverything(ctx, tx, f.reason, fleetOperator(a))
				})
				return a.Done(err, "%s goes on", of)
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			return a.Done(c.Resume(cmd.Context(), of, f.reason), "%s goes on", of)
		},
	}
	f.add(cmd, "why, for the record")
	return cmd
}

func pauseList(a *command.App) *cobra.Command {
	f := client.PauseFilter{Limit: 50}
	var past bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List what is paused",
		Long:    "List what is paused or killed; with --past also what was, the newest first. With\n--json it is one document, {\"items\": [...], \"next_cursor\": ...}.",
		Example: "  countersign pause list\n  countersign pause list --past --json",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			if f.Limit < 1 || f.Limit > command.MaxPage {
				return command.Misuse("--limit must be from 1 to %d", command.MaxPage)
			}
			f.Standing = !past
			page, err := c.Pauses(ctx, f)
			if err != nil {
				return err
			}
			return showPauses(a, page)
		}),
	}
	cmd.Flags().BoolVar(&past, "past", false, "also what was lifted")
	cmd.Flags().IntVar(&f.Limit, "limit", f.Limit, "how many a page, at most 200")
	cmd.Flags().StringVar(&f.Cursor, "cursor", "", "go on where the page before ended")
	return cmd
}

func showPauses(a *command.App, page client.Page[pause.Pause]) error {
	if a.JSON {
		return a.WriteJSON(page)
	}
	if len(page.Items) == 0 {
		a.Note("Nothing is paused.")
		return nil
	}
	rows := make([][]string, len(page.Items))
	for i, p := range page.Items {
		kind, ended := "paused", ""
		if p.Kill {
			kind, ended = "killed", strconv.Itoa(p.Cancelled)
		}
		if p.LiftedAt != nil {
			kind += ", lifted"
		}
		of := pause.Target{Scope: p.Scope, Subject: p.Subject}
		rows[i] = []string{of.String(), kind, command.Local(&p.At), command.Local(p.LiftedAt), p.By, ended, p.Reason}
	}
	if err := command.Table(a.Out, []string{"WHAT", "STATE", "SINCE", "UNTIL", "BY", "ENDED", "WHY"}, rows); err != nil {
		return err
	}
	if page.NextCursor != nil {
		a.Note("There are more: add --cursor %s", *page.NextCursor)
	}
	return nil
}
