package limits

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

const quietHelp = `Quiet hours are weekly windows in which nothing is sent: of the whole tenant, of
one employee, of one bucket, or to one recipient. What comes due in them waits
until they end, and then goes out spread over some minutes.

To look takes an operator's token, to set them an administrator's.`

// QuietHours returns the command quiet.
func QuietHours(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quiet",
		Short: "Set when nothing is sent: list, set, remove",
		Long:  quietHelp,
		Example: `  countersign quiet list
  countersign quiet set --tenant --timezone Europe/Berlin --window "20:00-08:00+1"
  countersign quiet set --bucket email.daily --timezone Europe/Berlin --window "sat,sun 00:00-24:00"`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(quietList(a), quietSet(a), quietRemove(a))
	return cmd
}

func quietList(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the quiet hours",
		Long:    "List the quiet hours. With --json it is one object a line.",
		Example: "  countersign quiet list",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			all, err := c.QuietHours(ctx)
			if err != nil {
				return err
			}
			if a.JSON {
				return command.WriteJSONLines(a, all)
			}
			if len(all) == 0 {
				a.Note("There are no quiet hours.")
				return nil
			}
			var rows [][]string
			for _, h := range all {
				for _, w := range h.Windows {
					rows = append(rows, []string{string(h.Scope), h.Subject, cmp.Or(strings.Join(w.Days, ","), "every day"), w.From + "-" + w.Until, h.Timezone})
				}
			}
			return command.Table(a.Out, []string{"OF", "WHICH", "DAYS", "WINDOW", "ZONE"}, rows)
		}),
	}
}

// quietFlags say whose quiet hours are meant.
type quietFlags struct {
	tenant                      bool
	employee, bucket, recipient string
}

func (f *quietFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.tenant, "tenant", false, "of the whole tenant")
	flags.StringVar(&f.employee, "employee", "", "of the employee of this `id`")
	flags.StringVar(&f.bucket, "bucket", "", "of the bucket of this `name`")
	flags.StringVar(&f.recipient, "recipient", "", "to this `kind:value`, such as email:ana@example.org or domain:example.org")
}

// one returns the one that was named.
func (f *quietFlags) one() (limits.QuietScope, string, error) {
	var scopes []limits.QuietScope
	subject := f.employee + f.bucket + f.recipient
	for scope, given := range map[limits.QuietScope]bool{
		limits.QuietTenant: f.tenant, limits.QuietEmployee: f.employee != "", limits.QuietBucket: f.bucket != "", limits.QuietRecipient: f.recipient != "",
	} {
		if given {
			scopes = append(scopes, scope)
		}
	}
	if len(scopes) != 1 {
		return "", "", command.Misuse("say whose: one of --tenant, --employee, --bucket and --recipient")
	}
	return scopes[0], subject, nil
}

const quietSetHelp = `Set quiet hours, instead of those that were set for the same.

A window is its days, which may be left out for every day, and its times:

  "20:00-08:00+1"          every day, from 20:00 to 08:00 of the next
  "sat,sun 00:00-24:00"    whole days
  "mon-fri 12:00-13:00"    days in a row

They are times of the wall clock of the zone, also when it is put forward or
back. Give --window again for each.`

func quietSet(a *command.App) *cobra.Command {
	var f quietFlags
	var zone string
	var windows []string
	spread := quiethours.DefaultSpread
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set quiet hours",
		Long:  quietSetHelp,
		Example: `  countersign quiet set --tenant --timezone Europe/Berlin --window "20:00-08:00+1" --window "sat,sun 00:00-24:00"
  countersign quiet set --recipient domain:example.org --timezone Asia/Kolkata --window "18:00-09:00+1" --spread 15m`,
		Args: command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			scope, subject, err := f.one()
			if err != nil {
				return err
			}
			h := limits.QuietHours{Scope: scope, Subject: subject, Hours: quiethours.Hours{Timezone: zone, Spread: new(envelope.Duration(spread))}}
			for _, text := range windows {
				w, err := parseWindow(text)
				if err != nil {
					return err
				}
				h.Windows = append(h.Windows, w)
			}
			if err := h.Validate(); err != nil {
				return command.Misuse("%s", command.FieldsText(err))
			}
			return a.Done(c.PutQuietHours(ctx, h), "set quiet hours of %s", strings.TrimSpace(string(scope)+" "+subject))
		}),
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&zone, "timezone", "", "the `zone` of the clock, such as Europe/Berlin (required)")
	flags.StringArrayVar(&windows, "window", nil, "a `window`, such as \"mon-fri 20:00-08:00+1\" (required; may be given again)")
	flags.DurationVar(&spread, "spread", spread, "over how long what waited is sent after the end")
	return cmd
}

// weekdays are the days of a week in order.
var weekdays = [...]string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// parseWindow reads a window as the command takes it.
func parseWindow(text string) (quiethours.Window, error) {
	var w quiethours.Window
	text = strings.TrimSpace(text)
	space := strings.LastIndexByte(text, ' ') + 1
	days, times := strings.TrimSpace(text[:space]), text[space:]
	for part := range strings.SplitSeq(days, ",") {
		first, last, span := strings.Cut(strings.TrimSpace(part), "-")
		switch from, to := slices.Index(weekdays[:], first), slices.Index(weekdays[:], last); {
		case first == "" && !span:
		case !span:
			w.Days = append(w.Days, first)
		case from < 0 || to < 0:
			return w, command.Misuse("--window: the days must be of %s, such as mon-fri or sat,sun", strings.Join(weekdays[:], ", "))
		default:
			for i := range (to-from+7)%7 + 1 {
				w.Days = append(w.Days, weekdays[(from+i)%7])
			}
		}
	}
	var ok bool
	if w.From, w.Until, ok = strings.Cut(times, "-"); !ok {
		return w, command.Misuse("--window must be days, which may be left out, and times: \"mon-fri 20:00-08:00+1\"")
	}
	return w, nil
}

func quietRemove(a *command.App) *cobra.Command {
	var f quietFlags
	cmd := &cobra.Command{
		Use:     "remove",
		Short:   "Remove quiet hours",
		Long:    "Remove quiet hours. What waited for their end goes out within the minute.",
		Example: "  countersign quiet remove --bucket email.daily",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			scope, subject, err := f.one()
			if err != nil {
				return err
			}
			return a.Done(c.DeleteQuietHours(ctx, scope, subject), "removed quiet hours of %s", strings.TrimSpace(string(scope)+" "+subject))
		}),
	}
	f.add(cmd)
	return cmd
}
