// Package triage has the commands for the mail that triage reads: its accounts,
// runs and messages, why a message was treated as it was, and corrections.
package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Command returns the command triage, with the one that sets accounts up. The command
// status calls notice, which shows new mail accounts of this machine.
func Command(a *command.App, setup *cobra.Command, notice func(now time.Time) error) *cobra.Command {
	return command.NewGroup("triage", setup, accounts(a), sync(a), run(a), status(a, notice), runs(a), undo(a), list(a), show(a), why(a), correct(a), labels(a), summary(a), draft(a), note(a), train(a), eval(a), calibrate(a), doctor(a), settings(a), export(a), purge(a), away(a), tags(a), showBrief(a), prepare(a), followUps(a))
}

func status(a *command.App, notice func(now time.Time) error) *cobra.Command {
	return command.New(a, "status [ACCOUNT]", command.Arguments(0, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		if err := notice(time.Now()); err != nil {
			return err
		}
		return statusView().Show(a)(c.TriageStatus(ctx, command.Argument(args, 0)))
	})
}

func statusView() command.View[wire.TriageStatus] {
	return command.View[wire.TriageStatus]{
		Empty: "No accounts; add one with `countersign triage accounts set`.",
		Head:  []string{"ACCOUNT", "STATE", "LAST RUN", "NEXT RUN", "OLDER MAIL", "MODELS", "WHY"}, Whole: true,
		Row: func(s wire.TriageStatus) []string {
			return []string{s.Account, s.State, command.Local(s.LastEndedAt), command.Local(s.NextRunAt), fmt.Sprintf("%d of %d folders", s.Backfilled, s.Folders), models(s.Models), because(s)}
		},
	}
}

func because(s wire.TriageStatus) string {
	text := s.Reason
	if s.LastError != "" {
		text += fmt.Sprintf("; last error (%d in a row): %s", s.Failures, s.LastError)
	}
	if s.SetAside > 0 {
		text += fmt.Sprintf("; %d messages are set aside: countersign triage list --set-aside %s", s.SetAside, s.Account)
	}
	if s.Expired > 0 {
		text += fmt.Sprintf("; proposals about %d messages expired undecided: countersign triage list --expired %s", s.Expired, s.Account)
	}
	if s.Models == nil {
		return text
	}
	for _, m := range s.Models.Servers {
		if !m.Usable {
			text += fmt.Sprintf("; model %s on %s cannot be asked (%s) since %s: %s", m.Model, m.Server, m.Kind, command.Local(m.Since), m.Why)
		}
	}
	if s.Models.RefusedAt != nil {
		text += fmt.Sprintf("; NOT LOCAL, refused at %s: %s", command.Local(s.Models.RefusedAt), s.Models.Refused)
	}
	return text
}

// models counts the usable models, and the messages that wait for one.
func models(m *wire.TriageModels) string {
	if m == nil {
		return "-"
	}
	usable := 0
	for _, one := range m.Servers {
		if one.Usable {
			usable++
		}
	}
	text := fmt.Sprintf("%d of %d usable", usable, len(m.Servers))
	if m.Withheld > 0 {
		text += fmt.Sprintf(", %d withheld", m.Withheld)
	}
	if m.Degraded > 0 {
		text += fmt.Sprintf(", %d to be asked again", m.Degraded)
	}
	return text
}

// lookEvery is how often sync looks whether a run has ended.
const lookEvery = 500 * time.Millisecond

func sync(a *command.App) *cobra.Command {
	var noWait, aside bool
	var wait time.Duration
	cmd := command.New(a, "sync [ACCOUNT]", command.Arguments(0, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		request := c.AskTriageRun
		if aside {
			request = c.RetryTriageSetAside
		}
		asked, err := ask(ctx, c, command.Argument(args, 0), request)
		if err != nil || noWait {
			return statusView().Show(a)(asked, err)
		}
		ended := make([]wire.TriageStatus, len(asked))
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		for i, s := range asked {
			if ended[i], err = Await(ctx, c, s, func() {}); err != nil {
				return err
			}
		}
		if err := statusView().Show(a)(ended, nil); err != nil {
			return err
		}
		for _, s := range ended {
			if s.LastError != "" {
				return fmt.Errorf("the run of %s failed: %s", s.Account, command.Safe(s.LastError))
			}
		}
		return nil
	})
	cmd.Flags().BoolVar(&aside, "set-aside", false, "also retry the messages that are set aside")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return without waiting for the runs")
	cmd.Flags().DurationVar(&wait, "wait", 10*time.Minute, "maximum `duration` to wait")
	return cmd
}

// ask asks for a run of an account, or of all that are enabled.
func ask(ctx context.Context, c *client.Client, account string, request func(context.Context, string) (wire.TriageStatus, error)) ([]wire.TriageStatus, error) {
	names := []string{account}
	if account == "" {
		all, err := c.TriageStatus(ctx, "")
		if err != nil {
			return nil, err
		}
		names = nil
		for _, s := range all {
			if s.Enabled {
				names = append(names, s.Account)
			}
		}
	}
	var asked []wire.TriageStatus
	for _, name := range names {
		s, err := request(ctx, name)
		if err != nil {
			return nil, err
		}
		asked = append(asked, s)
	}
	return asked, nil
}

// Await waits until a run that began after the question has ended. It calls look each
// time that it has looked.
func Await(ctx context.Context, c *client.Client, asked wire.TriageStatus, look func()) (wire.TriageStatus, error) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	last := asked
	for {
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("the run of %s has not ended: %s", asked.Account, command.Safe(last.Reason))
		case <-ticker.C:
		}
		all, err := c.TriageStatus(ctx, asked.Account)
		switch {
		case ctx.Err() != nil:
			continue
		case err != nil:
			return last, err
		case len(all) == 0:
			return last, fmt.Errorf("the account %s was deleted meanwhile", asked.Account)
		}
		last = all[0]
		if !last.Enabled {
			return last, fmt.Errorf("the account %s was disabled meanwhile", asked.Account)
		}
		look()
		if ended(last, asked.AskedAt) {
			return last, nil
		}
	}
}

// ended reports whether a run that began at a time or later has ended.
func ended(s wire.TriageStatus, since *time.Time) bool {
	begun := s.AskedAt == nil && s.LastStartedAt != nil && (since == nil || !s.LastStartedAt.Before(*since))
	return begun && s.LastEndedAt != nil && !s.LastEndedAt.Before(*s.LastStartedAt)
}

func list(a *command.App) *cobra.Command {
	var f client.TriageMessageFilter
	var question, aside bool
	view := command.View[wire.TriageMessage]{
		Empty: "No matching messages.", Head: []string{"ID", "RECEIVED", "BUCKET", "CATEGORY", "COHORT", "LEVEL", "PROPOSED", "TAGS", "HAS", "FROM", "SUBJECT", "WHY"},
		Row: func(m wire.TriageMessage) []string {
			bucket := m.Bucket
			if m.Question {
				bucket += " ?"
			}
			return []string{m.ID.String(), command.Local(&m.ReceivedAt), bucket, m.Category, m.Cohort, m.Level, fmt.Sprint(m.Proposed), tagsText(m.Tags), hasText(m), m.Sender, m.Subject, reasonText(m.Reason)}
		},
	}
	cmd := command.New(a, "list [ACCOUNT]", command.Arguments(0, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		if f.Account = command.Argument(args, 0); question {
			f.Question = new(true)
		}
		if aside {
			return setAside(ctx, a, c, f.Account)
		}
		return view.ShowPage(a)(c.TriageMessages(ctx, f))
	})
	command.EnumFlag(cmd, &f.Bucket, "bucket", "filter by `bucket`: urgent, actionable, informational or archived", "urgent", "actionable", "informational", "archived")
	command.EnumFlag(cmd, &f.Category, "category", "filter by `category`: primary, newsletters, notifications, promotions, receipts or social",
		"primary", "newsletters", "notifications", "promotions", "receipts", "social")
	command.EnumFlag(cmd, &f.Cohort, "cohort", "filter by `cohort`, such as vip or first_contact",
		"vip", "first_contact", "newsletters", "social", "transactional", "intra_org", "cross_org", "default")
	command.EnumFlag(cmd, &f.Has, "has", "filter by a `finding` in the message: receipt, meeting, task, travel or contact", "receipt", "meeting", "task", "travel", "contact")
	cmd.Flags().StringVar(&f.From, "from", "", "filter by sender `address` or domain")
	cmd.Flags().StringVar(&f.Label, "label", "", "filter by `label` of yours; \"triage labels\" lists them")
	cmd.Flags().BoolVar(&question, "question", false, "show only messages with an open question to their owner")
	cmd.Flags().BoolVar(&f.Expired, "expired", false, "show only messages with a proposal that expired undecided")
	cmd.Flags().BoolVar(&aside, "set-aside", false, "list messages that could not be read, judged or stored instead, with the reason")
	command.PastFlag(cmd, &f.Since, "since", "filter by receipt: since this `time`, or a duration ago")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

// asideRow is a message that is set aside, and its account.
type asideRow struct {
	Account string `json:"account"`
	wire.TriageSetAside
}

// setAside lists the messages of an account, or of all, that are set aside.
func setAside(ctx context.Context, a *command.App, c *client.Client, account string) error {
	accounts, err := c.TriageStatus(ctx, account)
	if err != nil {
		return err
	}
	var all []asideRow
	for _, s := range accounts {
		if s.SetAside == 0 {
			continue
		}
		rows, err := c.TriageSetAside(ctx, s.Account)
		if err != nil {
			return err
		}
		for _, row := range rows {
			all = append(all, asideRow{s.Account, row})
		}
	}
	return command.View[asideRow]{
		Empty: "No message is set aside.", Head: []string{"ACCOUNT", "RECEIVED", "FOLDER", "KEY", "FAILED", "ATTEMPTS", "LAST", "REASON"}, Whole: true,
		Row: func(r asideRow) []string {
			return []string{r.Account, command.Local(&r.ReceivedAt), r.Folder, r.Key, r.Step, fmt.Sprint(r.Attempts), command.Local(&r.TriedAt), r.Reason}
		},
	}.Show(a)(all, nil)
}

// find returns the id of a message that is named by its id or its Message-ID.
func find(ctx context.Context, c *client.Client, name string) (uuid.UUID, error) {
	if id, err := uuid.Parse(name); err == nil {
		return id, nil
	}
	page, err := c.TriageMessages(ctx, client.TriageMessageFilter{HeaderID: name})
	if err != nil {
		return uuid.Nil, err
	}
	switch len(page.Items) {
	case 0:
		return uuid.Nil, errors.New("no message that came in has this id or Message-ID")
	case 1:
		return page.Items[0].ID, nil
	}
	var ids []string
	for _, m := range page.Items {
		ids = append(ids, m.ID.String())
	}
	return uuid.Nil, fmt.Errorf("several messages have this Message-ID, which senders choose; name one of %s", strings.Join(ids, ", "))
}

// aboutMessage returns a command about one message.
func aboutMessage(a *command.App, use string, run func(ctx context.Context, c *client.Client, id uuid.UUID) error) *cobra.Command {
	return command.New(a, use, command.Arguments(1, 1, "a message's id or its Message-ID"), func(ctx context.Context, c *client.Client, args []string) error {
		id, err := find(ctx, c, args[0])
		if err != nil {
			return err
		}
		return run(ctx, c, id)
	})
}

func show(a *command.App) *cobra.Command {
	return aboutMessage(a, "show MESSAGE", func(ctx context.Context, c *client.Client, id uuid.UUID) error {
		return command.Show(a, showMessage)(c.TriageMessage(ctx, id))
	})
}

// findingText returns a finding on a line: its values with their places.
func findingText(f wire.TriageFinding) string {
	var parts []string
	for _, v := range f.Fields {
		place := v.Part
		if v.Span != nil {
			place += fmt.Sprintf(" %d-%d", v.Span.From, v.Span.To)
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s)", v.Name, v.Value, place))
	}
	text := strings.Join(parts, ", ")
	if f.Cancelled {
		text = "CANCELLED " + text
	}
	return text
}

func showMessage(a *command.App, m wire.TriageMessageDetail) error {
	var folders []string
	for _, l := range m.Locations {
		folders = append(folders, strings.TrimSpace(l.Folder+" "+strings.Join(l.Flags, " ")))
	}
	pairs := []string{
		"id", m.ID.String(), "account", m.Account, "Message-ID", m.HeaderID, "from", strings.TrimSpace(m.SenderName + " <" + m.Sender + ">"), "list", m.List,
		"subject", m.Subject, "received", command.Local(&m.ReceivedAt), "folders", strings.Join(folders, "; "),
		"bucket", m.Bucket, "category", m.Category, "act", m.Act, "cohort", m.Cohort, "level", m.Level,
	}
	if m.DecidedAt != nil {
		pairs = append(pairs, "confidence", fmt.Sprintf("%.2f", m.Confidence), "decided", command.Local(m.DecidedAt))
	}
	if m.Reason != nil {
		pairs = append(pairs, "why", m.Reason.Text, "codes", strings.Join(m.Reason.Codes, " "))
	}
	for _, f := range m.Findings {
		pairs = append(pairs, f.Kind, findingText(f))
	}
	for _, l := range m.Labels {
		pairs = append(pairs, "label", fmt.Sprintf("%s (%s, %s)", l.Label, l.State, labelReason(l)))
	}
	for _, t := range m.Attachments {
		pairs = append(pairs, "attachment", fmt.Sprintf("%s (%s, %d bytes)", t.Name, t.Detected, t.Size))
	}
	for _, p := range m.Proposals {
		id := ""
		if p.ActionID != nil {
			id = " " + p.ActionID.String()
		}
		pairs = append(pairs, "proposed", strings.TrimSpace(p.Action+" "+p.Phase+id+" "+p.Problem))
	}
	for _, t := range m.Tags {
		pairs = append(pairs, "tag", strings.TrimSpace(fmt.Sprintf("%s %s, %d failures %s", t.Action, t.State, t.Failures, t.Problem)))
	}
	for _, s := range m.Skips {
		pairs = append(pairs, "not proposed", s.Action+": "+s.Because)
	}
	for _, k := range m.Corrections {
		pairs = append(pairs, "correction", fmt.Sprintf("%d: %s is %s, by %s, taken back %s", k.Number, k.Head, k.Label, k.MadeBy, orNever(k.RetractedAt)))
	}
	for _, t := range m.Texts {
		pairs = append(pairs, t.Kind, fmt.Sprintf("%d: %s, requested by %s %s", t.Number, strings.TrimSpace(t.State+" "+t.Problem), t.AskedBy, command.Local(&t.AskedAt)))
	}
	if err := a.Fields(pairs...); err != nil {
		return err
	}
	for line := range strings.SplitSeq("\n"+m.Body, "\n") {
		if err := a.Print("%s\n", command.Safe(line)); err != nil {
			return err
		}
	}
	return nil
}

func reasonText(r *wire.TriageReason) string {
	if r == nil {
		return ""
	}
	return r.Text
}

func orNever(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return command.Local(t)
}

func why(a *command.App) *cobra.Command {
	return aboutMessage(a, "why MESSAGE", func(ctx context.Context, c *client.Client, id uuid.UUID) error {
		return command.Show(a, showWhy)(c.TriageWhy(ctx, id))
	})
}

func showWhy(a *command.App, w wire.TriageWhy) error {
	if err := a.Print("%s\n", command.Safe(w.Summary)); err != nil {
		return err
	}
	if w.Reason != nil {
		if err := a.Print("%s [%s]\n", command.Safe(w.Reason.Text), command.Safe(strings.Join(w.Reason.Codes, " "))); err != nil {
			return err
		}
	}
	for _, s := range w.Steps {
		if err := a.Print("  %-10s  %s\n", s.Stage, command.Safe(s.Text)); err != nil {
			return err
		}
	}
	return nil
}

func correct(a *command.App) *cobra.Command {
	var in wire.TriageCorrectionInput
	var retract int64
	cmd := aboutMessage(a, "correct MESSAGE", func(ctx context.Context, c *client.Client, id uuid.UUID) error {
		switch {
		case retract != 0 && in != (wire.TriageCorrectionInput{}):
			return command.Misuse("--retract cannot be combined with --head or --label")
		case retract != 0:
			return a.Done(c.RetractTriageCorrection(ctx, id, retract), "withdrew correction %d", retract)
		case in.Head == "" || in.Label == "":
			return command.Misuse("--head (the question) and --label (the correct answer) are required")
		}
		return command.Show(a, func(a *command.App, k wire.TriageCorrection) error {
			return a.Print("stored correction %d: %s is %s; it applies from the next run\n", k.Number, k.Head, k.Label)
		})(c.CorrectTriageMessage(ctx, id, in))
	})
	command.EnumFlag(cmd, &in.Head, "head", "`question` to correct: act, category, priority or unwanted", "act", "category", "priority", "unwanted")
	cmd.Flags().StringVar(&in.Label, "label", "", "correct `answer`, such as receipts for category")
	cmd.Flags().Int64Var(&retract, "retract", 0, "withdraw the correction with this `number` instead")
	return cmd
}

// hasText returns the kinds of the findings in a message, and whether it has a one-time
// code that holds or has ended.
func hasText(m wire.TriageMessage) string {
	all := slices.Clone(m.Has)
	switch {
	case m.CodeEndsAt == nil:
	case m.CodeEndsAt.After(time.Now()):
		all = append(all, "code")
	default:
		all = append(all, "code(ended)")
	}
	return strings.Join(all, " ")
}
