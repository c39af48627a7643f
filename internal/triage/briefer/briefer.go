// Package briefer has briefs and alerts sent as they become due, each once: it makes
// them, stores them, and proposes a message to each channel of an account, in one
// transaction. It sends nothing itself: policy decides, and workers send. Any number of
// processes may run it.
package briefer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/brief"
	"github.com/countersign-dev/countersign/internal/triage/lease"
	"github.com/countersign-dev/countersign/internal/triage/measure"
)

// Briefer makes the briefs of the accounts of a tenant.
type Briefer struct {
	accounts *lease.Accounts
	log      *slog.Logger
}

// New returns a Briefer.
func New(accounts *lease.Accounts, log *slog.Logger) *Briefer { return &Briefer{accounts, log} }

// every is the interval at which due briefs are looked for.
const every = 5 * time.Second

// Run makes briefs and alerts as they become due, until ctx ends.
func (b *Briefer) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := b.Round(ctx); err != nil && ctx.Err() == nil {
			b.log.WarnContext(ctx, "briefs not made", slog.String("error", measure.Problem(err)))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Round makes the briefs and alerts that are due.
func (b *Briefer) Round(ctx context.Context) error {
	var all []account.Account
	err := b.accounts.Tx(ctx, func(tx pgx.Tx) (err error) {
		all, err = account.List(ctx, tx, b.accounts.Tenant)
		return err
	})
	for _, a := range all {
		if a.Enabled && a.Proposals.Brief != nil && len(a.Proposals.Brief.Channels) > 0 {
			err = errors.Join(err, b.accounts.Tx(ctx, func(tx pgx.Tx) error { return b.make(ctx, tx, a) }))
		}
	}
	return err
}

// make makes the due messages of an account, unless another process does.
func (b *Briefer) make(ctx context.Context, tx pgx.Tx, a account.Account) error {
	now, ok, err := lock(ctx, tx, a)
	if err != nil || !ok {
		return err
	}
	return errors.Join(b.brief(ctx, tx, a, now), b.alert(ctx, tx, a, now))
}

// maxCovered is the longest time that a brief covers.
const maxCovered = 7 * 24 * time.Hour

// brief makes the latest due brief of an account. Earlier ones that were missed are
// covered by it.
func (b *Briefer) brief(ctx context.Context, tx pgx.Tx, a account.Account, now time.Time) error {
	settings := *a.Proposals.Brief
	after, since, err := last(ctx, tx, a)
	if err != nil {
		return err
	}
	due, ok := settings.Last(after, now)
	if !ok {
		return nil
	}
	if since.IsZero() {
		since = now.Add(-24 * time.Hour)
	}
	if now.Sub(since) > maxCovered {
		since = now.Add(-maxCovered)
	}
	made, err := brief.Read(ctx, tx, brief.About{
		Tenant: a.Tenant, Account: a.ID, Name: a.Name, Own: a.Settings.Addresses, Kind: due.Kind, Since: since, Until: now, Settings: settings, ShowMail: settings.ShowMail,
	})
	if err != nil {
		return err
	}
	deadline := now.Add(12 * time.Hour)
	if next, ok := settings.Next(now); ok && next.At.Before(deadline) {
		deadline = next.At
	}
	if now.Sub(due.At) > brief.LateAfter {
		made.Late = new(due.At.UTC())
	}
	var rows []row
	for _, c := range settings.Channels {
		r, err := message(a, c, string(due.Kind)+due.At.UTC().Format(time.RFC3339), deadline, brief.Title(made), brief.Text(made), brief.Slack(made))
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	return propose(ctx, tx, a, string(due.Kind), due.At, now, rows)
}

// maxAlerts bounds the alerts of an hour; window is the hour.
const (
	maxAlerts = 5
	window    = time.Hour
	// maxUrgent bounds the messages that an alert is about.
	maxUrgent = 1000
)

// alert alerts the channels of Slack to urgent mail. Mail that is urgent while the
// alerts of the hour are used up is in the next one.
func (b *Briefer) alert(ctx context.Context, tx pgx.Tx, a account.Account, now time.Time) error {
	settings := *a.Proposals.Brief
	if !settings.Alerts {
		return nil
	}
	since := now.Add(-24 * time.Hour)
	if a.UpdatedAt.After(since) {
		since = a.UpdatedAt
	}
	pending, sent, err := urgent(ctx, tx, a, since, now)
	if err != nil || len(pending) == 0 || sent >= maxAlerts {
		return err
	}
	shown := brief.Alert(a.Name, pending, settings.ShowMail)
	var rows []row
	for _, c := range settings.Channels {
		if c.Source == "" {
			continue // mail about mail in the same mailbox
		}
		r, err := message(a, c, "alert"+now.UTC().Format(time.RFC3339Nano), now.Add(window), "", "", shown)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil
	}
	return errors.Join(propose(ctx, tx, a, "alert", now, now, rows), alerted(ctx, tx, a, pending, now))
}

// row is a message to a channel.
type row struct {
	External string          `json:"external_id"`
	Channel  string          `json:"channel"`
	Envelope json.RawMessage `json:"envelope"`
}

// message returns the message to a channel. It has one name per account, channel and
// due time.
func message(a account.Account, c brief.Channel, due string, deadline time.Time, subject, text string, blocks brief.Message) (row, error) {
	channel, err := json.Marshal(c)
	if err != nil {
		return row{}, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", a.ID, channel, due))
	r := row{External: "triage:brief:" + hex.EncodeToString(sum[:]), Channel: string(channel)}
	tool := envelope.Tool{Source: cmp.Or(c.Source, a.Proposals.Source), Name: c.Tool()}
	var args any
	switch tool.Name {
	case brief.ToolMail:
		args = map[string]string{"account": a.Proposals.Account, "to": c.To, "subject": subject, "text": text}
	case brief.ToolSlack:
		args = struct {
			Channel string `json:"channel"`
			brief.Message
		}{c.Channel, blocks}
	default:
		args = blocks
	}
	e := envelope.Proposal{Type: envelope.TypeExec, ExternalID: r.External, Tool: tool, Risk: envelope.RiskLow}
	e.Constraints.MustRunBefore = deadline.UTC().Truncate(time.Second)
	if e.Args, err = json.Marshal(args); err != nil {
		return r, err
	}
	if err := e.Validate(); err != nil {
		return r, err
	}
	r.Envelope, err = json.Marshal(e)
	return r, err
}

// messages are the urgent messages of an alert.
type messages = []wire.TriageBriefMessage
