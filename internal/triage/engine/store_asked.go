package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// pendingMail returns messages about which one of the tiers is to be asked, or
// else those that are withheld for long enough or for other tiers.
func pendingMail(ctx context.Context, tx pgx.Tx, r *run, tiers []cascade.Tier, withheld bool, most int) ([]pending, error) {
	rows, err := dbsqlc.New().TriageQuestionsDue(ctx, tx, &dbsqlc.TriageQuestionsDueParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Tiers: words(tiers), Withheld: withheld, LongestSeconds: r.engine.cfg.Withhold.Seconds(),
		Characters: maxAsked, Most: int64(most),
	})
	return postgres.TryMap(rows, err, func(row dbsqlc.TriageQuestionsDueRow) (pending, error) {
		var found signals
		m := pending{
			Mail:     cascade.Mail{ID: row.MessageID, Account: r.account.ID, Subject: row.Subject, Body: row.Body, Settings: r.account.Settings},
			withheld: row.Withheld, obsolete: row.Obsolete,
		}
		for _, tier := range row.Wanted {
			m.open = append(m.open, cascade.Tier(tier))
		}
		err := errors.Join(json.Unmarshal(row.Answers, &m.Replies), json.Unmarshal(row.Prediction, &m.Prediction),
			json.Unmarshal(row.Decision, &m.Decision), json.Unmarshal(row.Signals, &found))
		m.Signals = signal.Result{
			Symbols: found.Symbols, Sums: found.Sums, Suspicious: found.Suspicious, Phishing: found.Phishing, Injection: found.Injection,
			SecurityAlert: found.SecurityAlert, Code: found.Code,
		}
		if err != nil {
			return m, fmt.Errorf("questions about message %s: %w", row.MessageID, err)
		}
		return m, nil
	})
}

type answersRow struct {
	Message uuid.UUID       `json:"message_id"`
	Answers []cascade.Reply `json:"answers"`
	Wanted  []cascade.Tier  `json:"wanted"`
}

// putAnswers stores answers about messages of which more is to be asked.
func putAnswers(ctx context.Context, tx pgx.Tx, r *run, those []pending) error {
	var rows []answersRow
	for _, m := range those {
		rows = append(rows, answersRow{m.ID, m.Replies, m.open})
	}
	return inserted(rows, func(raw []byte) error {
		return dbsqlc.New().TriageAnswersPut(ctx, tx, &dbsqlc.TriageAnswersPutParams{TenantID: r.tenant(), Rows: raw})
	})
}

// decidedAgain ends what had messages decided again. Of those that could not be,
// nothing more is asked.
func decidedAgain(ctx context.Context, tx pgx.Tx, r *run, ids []uuid.UUID, decided map[uuid.UUID]bool) error {
	var lost []uuid.UUID
	for _, id := range ids {
		if !decided[id] {
			lost = append(lost, id)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return errors.Join(decideAgain(ctx, tx, r, lost, ""), dropQuestions(ctx, tx, r, lost))
}

// dropQuestions has nothing asked any more about messages.
func dropQuestions(ctx context.Context, tx pgx.Tx, r *run, ids []uuid.UUID) error {
	if len(ids) == 0 {
		return nil
	}
	return dbsqlc.New().TriageQuestionsDrop(ctx, tx, &dbsqlc.TriageQuestionsDropParams{TenantID: r.tenant(), MessageIds: ids})
}

// configured wants no tier any more that has no model.
func configured(ctx context.Context, tx pgx.Tx, r *run) error {
	return dbsqlc.New().TriageQuestionsConfigured(ctx, tx, &dbsqlc.TriageQuestionsConfiguredParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Tiers: words(r.engine.cfg.Models.configured()),
	})
}

// modelStates records what is known of the models.
func modelStates(ctx context.Context, tx pgx.Tx, r *run) error {
	states, refused := []ModelState{}, Refusal{}
	if models := r.engine.cfg.Models; models != nil {
		states, refused = models.States(), models.Refused()
	}
	raw, err := rowsOf(states)
	if err != nil {
		return err
	}
	return dbsqlc.New().TriageScheduleModels(ctx, tx, &dbsqlc.TriageScheduleModelsParams{
		TenantID: r.tenant(), AccountID: r.account.ID, Holder: &r.holder, Models: raw, Refused: plainText(refused.What), RefusedAt: postgres.OrNull(refused.At),
	})
}

func pendingStates(ctx context.Context, tx pgx.Tx, e *Engine) (measure.Pending, error) {
	row, err := dbsqlc.New().TriageQuestionStates(ctx, tx, uuid.UUID(e.tenant))
	return measure.Pending{Withheld: row.Withheld, Degraded: row.Degraded}, err
}
