package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/draft"
)

// askTexts asks for texts of kinds about messages, by the rule of the account.
func askTexts(ctx context.Context, tx pgx.Tx, r *run, messages []uuid.UUID, kinds []string) error {
	return dbsqlc.New().TriageTextWanted(ctx, tx, &dbsqlc.TriageTextWantedParams{
		TenantID: r.tenant(), AccountID: r.account.ID, AskedBy: "triage", MessageIds: messages, Kinds: kinds,
	})
}

func (p *pass) textsDue(ctx context.Context) (due []*dueText, err error) {
	err = p.engine.tx(ctx, func(tx pgx.Tx) error {
		rows, err := dbsqlc.New().TriageTextsDue(ctx, tx, &dbsqlc.TriageTextsDueParams{TenantID: p.tenant(), AccountID: p.account.ID, Most: maxTexts})
		if err != nil || len(rows) == 0 {
			return err
		}
		ids := make([]uuid.UUID, len(rows))
		for i, r := range rows {
			ids[i] = r.MessageID
		}
		about, err := dueMessages(ctx, tx, p.run, ids)
		if err != nil {
			return err
		}
		due = nil
		for _, r := range rows {
			d := &dueText{
				number: r.TextNo, tried: int(r.Attempts), kind: draft.Kind(r.Kind),
				source: draft.Source{From: r.SenderName + " <" + r.Sender + ">", Subject: r.Subject, Body: r.Body, Note: r.Note},
			}
			d.about = about[slices.IndexFunc(about, func(m dueMessage) bool { return m.id == r.MessageID })]
			if err := errors.Join(json.Unmarshal(r.Decision, &d.decision), json.Unmarshal(r.Signals, &d.signals)); err != nil {
				return fmt.Errorf("message %s: %w", r.MessageID, err)
			}
			due = append(due, d)
		}
		return nil
	})
	return due, err
}

// examples returns the mail whose manner drafts take, where a draft is due.
func (p *pass) examples(ctx context.Context, due []*dueText) (bodies []string, err error) {
	ids := p.account.Texts.Examples
	if len(ids) == 0 || !slices.ContainsFunc(due, func(d *dueText) bool { return d.kind == draft.Reply }) {
		return nil, nil
	}
	err = p.engine.tx(ctx, func(tx pgx.Tx) (err error) {
		bodies, err = dbsqlc.New().TriageTextExamples(ctx, tx, &dbsqlc.TriageTextExamplesParams{
			TenantID: p.tenant(), AccountID: p.account.ID, HeaderIds: ids, Most: draft.MaxExamples,
		})
		return err
	})
	return bodies, err
}

// textTried records an attempt that led to nothing.
func textTried(ctx context.Context, tx pgx.Tx, r *run, d *dueText) error {
	return dbsqlc.New().TriageTextTried(ctx, tx, &dbsqlc.TriageTextTriedParams{TenantID: r.tenant(), TextNo: d.number})
}

// endText stores how a text ended. It reports whether it still waited.
func endText(ctx context.Context, tx pgx.Tx, r *run, d *dueText, w written, external string) (bool, error) {
	n, err := dbsqlc.New().TriageTextEnd(ctx, tx, &dbsqlc.TriageTextEndParams{
		TenantID: r.tenant(), TextNo: d.number, Text: plainText(w.text), Problem: plainText(w.problem), Model: plainText(w.model), Prompt: d.kind.Prompt(), ExternalID: external,
	})
	return n > 0, err
}

// proposeText proposes a draft, and counts that for the run.
func (c *chunk) proposeText(ctx context.Context, tx pgx.Tx) error {
	if err := c.propose(ctx, tx); err != nil || c.proposed == 0 {
		return err
	}
	return dbsqlc.New().TriageRunCount(ctx, tx, &dbsqlc.TriageRunCountParams{
		TenantID: c.tenant(), AccountID: c.account.ID, RunID: c.id, Kind: string(c.kind), Proposed: int32(c.proposed),
	})
}
