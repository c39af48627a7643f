package limits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// QuietHours returns the command quiet.
func QuietHours(a *command.App) *cobra.Command {
	return command.NewGroup("quiet", quietList(a), quietPreview(a), a.CreateFlag(quietSet(a)), quietRemove(a))
}

func quietList(a *command.App) *cobra.Command {
	return command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		all, err := c.QuietHours(ctx)
		if err != nil || a.JSON || len(all) == 0 {
			return command.View[wire.QuietHours]{Empty: "No quiet hours are set."}.Show(a)(all, err)
		}
		var rows [][]string
		for _, h := range all {
			for _, w := range h.Windows {
				rows = append(rows, []string{h.Scope, h.Subject, cmp.Or(strings.Join(w.Days, ","), "every day"), w.From + "-" + w.Until, h.Timezone})
			}
		}
		return a.Table([]string{"OF", "WHICH", "DAYS", "WINDOW", "ZONE"}, rows)
	})
}

// quietFlags name a scope of quiet hours.
type quietFlags struct {
	tenant                      bool
	employee, bucket, recipient string
}

func (f *quietFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.tenant, "tenant", false, "quiet hours of the whole tenant")
	flags.StringVar(&f.employee, "employee-id", "", "quiet hours of the employee with this `id`")
	flags.StringVar(&f.bucket, "bucket", "", "quiet hours of the bucket with this `name`")
	flags.StringVar(&f.recipient, "recipient", "", "quiet hours of the recipient `kind:value`, such as email:ana@example.org or domain:example.org")
}

// scope returns the one scope that was named, with its subject.
func (f *quietFlags) scope() (scope, subject string, err error) {
	named := 0
	for name, given := range map[string]bool{"tenant": f.tenant, "employee": f.employee != "", "bucket": f.bucket != "", "recipient": f.recipient != ""} {
		if given {
			scope = name
			named++
		}
	}
	if named != 1 {
		return "", "", command.Misuse("one of --tenant, --employee-id, --bucket and --recipient is required")
	}
	return scope, f.employee + f.bucket + f.recipient, nil
}

// windowFlags add the flags of the windows and their zone.
func windowFlags(cmd *cobra.Command, h *wire.QuietHours) {
	cmd.Flags().StringVar(&h.Timezone, "timezone", "", "time `zone` of the windows, such as Europe/Berlin (required)")
	command.Flag(cmd, "window", "window", "weekly `window`, such as \"mon-fri 20:00-08:00+1\" (required, repeatable)", func(text string) error {
		w, err := parseWindow(text)
		h.Windows = append(h.Windows, w)
		return err
	})
}

func quietPreview(a *command.App) *cobra.Command {
	var f quietFlags
	var h wire.QuietHours
	var from time.Time
	cmd := command.New(a, "preview", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) (err error) {
		if f != (quietFlags{}) {
			if h.Scope, h.Subject, err = f.scope(); err != nil {
				return err
			}
		}
		return command.Show(a, showPreview)(c.PreviewQuietHours(ctx, h, from))
	})
	f.add(cmd)
	windowFlags(cmd, &h)
	command.Flag(cmd, "from", "date", "first `date` of the two weeks (default: today)", func(text string) (err error) {
		if from, err = time.Parse(time.DateOnly, text); err != nil {
			return errors.New("must be a date such as 2027-03-21")
		}
		return nil
	})
	return cmd
}

// showPreview prints quiet times on the clock of their zone.
func showPreview(a *command.App, preview wire.QuietPreview) error {
	const clock = "Mon 2006-01-02 15:04 -07:00"
	var rows [][]string
	for _, i := range preview.Intervals {
		rows = append(rows, []string{i.From.Format(clock), i.Until.Format(clock), i.Until.Sub(i.From).String()})
	}
	if err := a.Table([]string{"FROM", "UNTIL", "LENGTH"}, rows); err != nil {
		return err
	}
	for _, change := range preview.ClockChanges {
		a.Note("the clock changes by %s at %s", time.Duration(change.BySeconds)*time.Second, change.At.Format(clock))
	}
	if preview.Waiting != nil {
		a.Note("%d scheduled action(s) are in these times", *preview.Waiting)
	}
	return nil
}

func quietSet(a *command.App) *cobra.Command {
	var f quietFlags
	var h wire.QuietHours
	spread := envelope.Duration(5 * time.Minute)
	cmd := command.New(a, "set", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) (err error) {
		if h.Scope, h.Subject, err = f.scope(); err != nil {
			return err
		}
		h.Spread = &spread
		return a.Done(c.PutQuietHours(ctx, h), "set quiet hours of %s", strings.TrimSpace(h.Scope+" "+h.Subject))
	})
	f.add(cmd)
	windowFlags(cmd, &h)
	command.DurationFlag(cmd, &spread, "spread", "spread waiting actions over this duration after the end").DefValue = "5m"
	return cmd
}

// weekdays are the days of a week in order.
var weekdays = [...]string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// parseWindow reads a window as the command takes it.
func parseWindow(text string) (wire.Window, error) {
	var w wire.Window
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
			return w, fmt.Errorf("has invalid days; use %s, such as mon-fri or sat,sun", strings.Join(weekdays[:], ", "))
		default:
			for i := range (to-from+7)%7 + 1 {
				w.Days = append(w.Days, weekdays[(from+i)%7])
			}
		}
	}
	var ok bool
	if w.From, w.Until, ok = strings.Cut(times, "-"); !ok {
		return w, fmt.Errorf("must be optional days, and times, such as \"mon-fri 20:00-08:00+1\"")
	}
	return w, nil
}

func quietRemove(a *command.App) *cobra.Command {
	var f quietFlags
	cmd := command.New(a, "remove", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		scope, subject, err := f.scope()
		if err != nil {
			return err
		}
		return a.Done(c.DeleteQuietHours(ctx, scope, subject), "removed quiet hours of %s", strings.TrimSpace(scope+" "+subject))
	})
	f.add(cmd)
	return cmd
}
