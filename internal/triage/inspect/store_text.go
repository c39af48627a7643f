package inspect

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/draft"
)

// maxTexts limits the texts of one message, since a model writes each.
const maxTexts = 20

// Texts returns the requested texts of a message in order.
func Texts(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, message uuid.UUID) ([]wire.TriageText, error) {
	rows, err := dbsqlc.New().TriageTextList(ctx, tx, &dbsqlc.TriageTextListParams{TenantID: tenant, MessageID: message})
	return postgres.Map(rows, err, func(r dbsqlc.TriageTextListRow) wire.TriageText {
		t := wire.TriageText{
			Number: r.TextNo, Kind: r.Kind, Note: r.Note, AskedBy: envelope.Actor(r.AskedBy), AskedAt: r.AskedAt.UTC(), State: "waiting",
			EndedAt: postgres.UTC(r.EndedAt), Text: r.Text, Problem: r.Problem, Model: r.Model, Prompt: r.Prompt, ExternalID: r.ExternalID,
		}
		switch {
		case r.EndedAt != nil && r.Text != "":
			t.State = "written"
		case r.EndedAt != nil:
			t.State = "failed"
		}
		return t
	})
}

// AskText requests a text about a message and a run of the account, so that it
// is written soon. If one of the kind is pending, it returns that. For a
// message that the owner sent, or with too many texts, the error is
// fault.Conflict.
func AskText(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, message uuid.UUID, in wire.TriageTextInput, by envelope.Actor) (wire.TriageText, error) {
	if err := checkText(in); err != nil {
		return wire.TriageText{}, err
	}
	m, err := Message(ctx, tx, tenant, message)
	switch {
	case err != nil:
		return wire.TriageText{}, err
	case m.DecidedAt == nil:
		return wire.TriageText{}, fault.New(fault.Conflict, "texts need a received message with a decision")
	case len(m.Texts) >= maxTexts:
		return wire.TriageText{}, fault.New(fault.Conflict, "the message already has %d texts", maxTexts)
	}
	rows, err := dbsqlc.New().TriageTextAsk(ctx, tx, &dbsqlc.TriageTextAskParams{
		TenantID: tenant, MessageID: message, Kind: in.Kind, Note: strings.TrimSpace(in.Note), AskedBy: string(by), Most: maxTexts,
	})
	if err != nil {
		return wire.TriageText{}, err
	}
	if len(rows) > 0 {
		of, err := account.Get(ctx, tx, tenant, m.Account)
		if err != nil {
			return wire.TriageText{}, err
		}
		if err := AskRun(ctx, tx, tenant, of.ID); err != nil {
			return wire.TriageText{}, err
		}
	}
	all, err := Texts(ctx, tx, tenant, message)
	for _, t := range all {
		if t.Kind == in.Kind && t.EndedAt == nil {
			return t, err
		}
	}
	if err == nil {
		err = fault.New(fault.Conflict, "the text was just written; read the message again")
	}
	return wire.TriageText{}, err
}

func checkText(in wire.TriageTextInput) error {
	kind := draft.Kind(in.Kind)
	switch {
	case !kind.Known():
		return check.Invalid("/kind", envelope.RuleEnum, "must be summary or draft")
	case in.Note != "" && kind != draft.Reply:
		return check.Invalid("/note", envelope.RuleUnknownField, "goes with a draft alone")
	case utf8.RuneCountInString(in.Note) > draft.MaxNote || strings.ContainsRune(in.Note, 0):
		return check.Invalid("/note", envelope.RuleMaxLength, "must be text of at most %d characters", draft.MaxNote)
	}
	return nil
}
