package asker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/draft"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/reader"
)

// pending returns messages with a question for one of the tiers or, with
// withheld, messages that have been withheld long enough or wait for other
// tiers.
func (a *Asker) pending(ctx context.Context, tx pgx.Tx, tiers []cascade.Tier, withheld bool, most int) ([]pending, error) {
	rows, err := dbsqlc.New().TriageQuestionsDue(ctx, tx, &dbsqlc.TriageQuestionsDueParams{
		TenantID: a.lease.Tenant, AccountID: a.lease.Account.ID, Tiers: cascade.Names(tiers), Withheld: withheld, LongestSeconds: a.cfg.Withhold.Seconds(),
		Characters: maxAsked, Most: int64(most),
	})
	return postgres.TryMap(rows, err, func(row dbsqlc.TriageQuestionsDueRow) (pending, error) {
		m := pending{
			mail:     cascade.Mail{ID: row.MessageID, Account: a.lease.Account.ID, Subject: row.Subject, Body: row.Body, Settings: a.lease.Account.Settings},
			withheld: row.Withheld, obsolete: row.Obsolete,
		}
		for _, tier := range row.Wanted {
			m.open = append(m.open, cascade.Tier(tier))
		}
		err := errors.Join(json.Unmarshal(row.Answers, &m.mail.Replies), json.Unmarshal(row.Prediction, &m.mail.Prediction),
			json.Unmarshal(row.Decision, &m.mail.Decision), json.Unmarshal(row.Signals, &m.mail.Signals))
		if err != nil {
			return m, fmt.Errorf("questions about message %s: %w", row.MessageID, err)
		}
		return m, nil
	})
}

// putAnswers stores answers about messages with further open questions.
func (a *Asker) putAnswers(ctx context.Context, tx pgx.Tx, messages []pending) error {
	type row struct {
		Message uuid.UUID       `json:"message_id"`
		Answers []cascade.Reply `json:"answers"`
		Wanted  []cascade.Tier  `json:"wanted"`
	}
	rows := make([]row, len(messages))
	for i, m := range messages {
		rows[i] = row{m.mail.ID, m.mail.Replies, m.open}
	}
	raw, err := postgres.JSON(rows)
	if err != nil {
		return err
	}
	return dbsqlc.New().TriageAnswersPut(ctx, tx, &dbsqlc.TriageAnswersPutParams{TenantID: a.lease.Tenant, Rows: raw})
}

// Configured drops the questions for tiers without a model.
func (a *Asker) Configured(ctx context.Context, tx pgx.Tx) error {
	return dbsqlc.New().TriageQuestionsConfigured(ctx, tx, &dbsqlc.TriageQuestionsConfiguredParams{
		TenantID: a.lease.Tenant, AccountID: a.lease.Account.ID, Tiers: cascade.Names(a.cfg.Models.configured()),
	})
}

// PutStates stores the states of the models.
func (a *Asker) PutStates(ctx context.Context, tx pgx.Tx) error {
	states, refused := []modelState{}, refusal{}
	if a.cfg.Models != nil {
		states, refused = a.cfg.Models.states(), a.cfg.Models.lastRefusal()
	}
	raw, err := postgres.JSON(states)
	if err != nil {
		return err
	}
	return dbsqlc.New().TriageScheduleModels(ctx, tx, &dbsqlc.TriageScheduleModelsParams{
		TenantID: a.lease.Tenant, AccountID: a.lease.Account.ID, Holder: &a.lease.Holder, Models: raw, Refused: postgres.Text(refused.text), RefusedAt: postgres.OrNull(refused.at),
	})
}

// Pending returns how many messages of a tenant have open questions.
func Pending(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (measure.Pending, error) {
	row, err := dbsqlc.New().TriageQuestionStates(ctx, tx, tenant)
	return measure.Pending{Withheld: row.Withheld, Degraded: row.Degraded}, err
}

func (a *Asker) textsDue(ctx context.Context) (due []*dueText, err error) {
	err = a.lease.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := dbsqlc.New().TriageTextsDue(ctx, tx, &dbsqlc.TriageTextsDueParams{TenantID: a.lease.Tenant, AccountID: a.lease.Account.ID, Most: maxTexts})
		if err != nil || len(rows) == 0 {
			return err
		}
		ids := make([]uuid.UUID, len(rows))
		for i, r := range rows {
			ids[i] = r.MessageID
		}
		about, err := a.reader.Stored(ctx, tx, ids)
		if err != nil {
			return err
		}
		due = nil
		for _, r := range rows {
			d := &dueText{
				number: r.TextNo, tried: int(r.Attempts), kind: draft.Kind(r.Kind),
				source: draft.Source{From: r.SenderName + " <" + r.Sender + ">", Subject: r.Subject, Body: r.Body, Note: r.Note},
			}
			d.about = about[slices.IndexFunc(about, func(m reader.Stored) bool { return m.ID == r.MessageID })]
			due = append(due, d)
		}
		return nil
	})
	return due, err
}

// maxBodies limits the mail among which examples are searched: some consists of the
// words of others.
const maxBodies = 4 * draft.MaxExamples

// examples returns mail of the owner as examples of the style of a draft, as the
// account selects it. Mail to a recipient was sent to the very address that the
// draft goes to.
func (a *Asker) examples(ctx context.Context, d *dueText) (bodies []string, err error) {
	s := a.lease.Account.Texts
	p := &dbsqlc.TriageTextExamplesParams{
		TenantID: a.lease.Tenant, AccountID: a.lease.Account.ID, HeaderIds: s.Examples, Own: a.lease.Account.Settings.Addresses, Most: maxBodies,
	}
	switch s.ExamplesFrom {
	case draft.FromRecipient:
		p.Recipient = plan.Recipient(d.target.Message)
	case draft.FromFolder:
		p.Folder = s.ExamplesFolder
	case draft.FromNone, "":
	}
	if len(p.HeaderIds) == 0 && p.Recipient == "" && p.Folder == "" {
		return nil, nil
	}
	err = a.lease.Tx(ctx, func(tx pgx.Tx) (err error) {
		bodies, err = dbsqlc.New().TriageTextExamples(ctx, tx, p)
		return err
	})
	return draft.Examples(bodies), err
}

// putTried records a failed attempt.
func (a *Asker) putTried(ctx context.Context, tx pgx.Tx, d *dueText) error {
	return dbsqlc.New().TriageTextTried(ctx, tx, &dbsqlc.TriageTextTriedParams{TenantID: a.lease.Tenant, TextNo: d.number})
}

// putText stores the result of a text. It reports whether the text was still
// pending.
func (a *Asker) putText(ctx context.Context, tx pgx.Tx, d *dueText, w written, external string) (bool, error) {
	n, err := dbsqlc.New().TriageTextEnd(ctx, tx, &dbsqlc.TriageTextEndParams{
		TenantID: a.lease.Tenant, TextNo: d.number, Text: postgres.Text(w.text), Problem: postgres.Text(w.problem), Model: postgres.Text(w.model), Prompt: d.kind.Prompt(), ExternalID: external,
	})
	return n > 0, err
}
