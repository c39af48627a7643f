package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// Status returns the status of every account of a tenant, or of one.
func Status(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account string, now time.Time) ([]wire.TriageStatus, error) {
	rows, err := dbsqlc.New().TriageStatusList(ctx, tx, &dbsqlc.TriageStatusListParams{TenantID: tenant, Account: account})
	return postgres.TryMap(rows, err, func(r dbsqlc.TriageStatusListRow) (wire.TriageStatus, error) {
		state, err := quotaOf(r.Quota)
		models, modelsErr := modelsOf(r)
		return schedule{
			status: wire.TriageStatus{
				Account: r.Name, Kind: r.Kind, Enabled: r.Enabled, NextRunAt: postgres.UTC(r.NextRunAt), AskedAt: postgres.UTC(r.AskedAt),
				LastStartedAt: postgres.UTC(r.LastStartedAt), LastEndedAt: postgres.UTC(r.LastEndedAt), LastReadAt: postgres.UTC(r.LastReadAt), LastError: r.LastError,
				Failures: int(r.Failures), Folders: int(r.Folders), Backfilled: int(r.Backfilled), Quota: state, Models: models,
				SetAside: int(r.SetAside), Expired: int(r.Expired),
			},
			pause: r.Pause, scheduled: r.Scheduled, holder: r.Holder, lastRun: r.LastRunID, lease: r.LeaseUntil,
		}.at(now), errors.Join(err, modelsErr)
	})
}

// modelsOf returns the state of the language models for people, or nil.
func modelsOf(r dbsqlc.TriageStatusListRow) (*wire.TriageModels, error) {
	v := &wire.TriageModels{
		Withheld: int(r.Withheld), Degraded: int(r.Degraded), Servers: []wire.TriageModel{}, Refused: r.ModelRefused, RefusedAt: postgres.UTC(r.ModelRefusedAt),
	}
	if r.WaitingSince.Unix() > 0 {
		v.Since = new(r.WaitingSince.UTC())
	}
	err := json.Unmarshal(r.Models, &v.Servers)
	if len(v.Servers) == 0 && v.Since == nil && v.RefusedAt == nil {
		return nil, err
	}
	return v, err
}

// Travelling reports whether an account is set travelling.
func Travelling(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID) (bool, error) {
	pause, err := dbsqlc.New().TriagePauseOf(ctx, tx, &dbsqlc.TriagePauseOfParams{TenantID: tenant, AccountID: account})
	return pause == "travelling", err
}

// AskRun requests a run of an account.
func AskRun(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID) error {
	return dbsqlc.New().TriageRunAsk(ctx, tx, &dbsqlc.TriageRunAskParams{TenantID: tenant, AccountID: account})
}

// RetrySetAside schedules the messages that are set aside in an account to be
// read again, and requests a run.
func RetrySetAside(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID) error {
	if _, err := dbsqlc.New().TriageSetAsideAgain(ctx, tx, &dbsqlc.TriageSetAsideAgainParams{TenantID: tenant, AccountID: account}); err != nil {
		return err
	}
	return AskRun(ctx, tx, tenant, account)
}

// maxSetAside limits the messages that SetAside returns.
const maxSetAside = 500

// SetAside returns the messages of an account that are set aside, the latest
// attempt first.
func SetAside(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID) ([]wire.TriageSetAside, error) {
	rows, err := dbsqlc.New().TriageSetAsideList(ctx, tx, &dbsqlc.TriageSetAsideListParams{TenantID: tenant, AccountID: account, Most: maxSetAside})
	return postgres.Map(rows, err, func(r dbsqlc.TriageSetAsideListRow) wire.TriageSetAside {
		return wire.TriageSetAside{
			Folder: r.Folder, Key: r.Key, ReceivedAt: r.ReceivedAt.UTC(), Size: r.Size, Step: r.Step, Reason: r.Reason, Attempts: int(r.Attempts),
			Since: r.Since.UTC(), TriedAt: r.TriedAt.UTC(), Again: r.Again,
		}
	})
}

// Place is a position in a list ordered by time, newest first. The zero value
// is its beginning.
type Place struct {
	At time.Time
	ID uuid.UUID
	// Name orders rows of one ID; empty in most lists.
	Name string
}

// Runs returns the runs of an account before a place.
func Runs(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, before Place, most int) ([]wire.TriageRun, error) {
	rows, err := dbsqlc.New().TriageRunList(ctx, tx, &dbsqlc.TriageRunListParams{
		TenantID: tenant, AccountID: account, BeforeAt: postgres.OrNull(before.At), BeforeID: postgres.OrNull(before.ID), Most: int64(most),
	})
	return postgres.Map(rows, err, func(r dbsqlc.TriageRunListRow) wire.TriageRun {
		return wire.TriageRun{
			ID: r.RunID, Kind: r.Kind, StartedAt: r.StartedAt.UTC(), EndedAt: postgres.UTC(r.EndedAt), Error: r.Error,
			Read: int(r.Read), Decided: int(r.Decided), Proposed: int(r.Proposed), Skipped: int(r.Skipped),
		}
	})
}

// RunAccount returns the account of a run. For an unknown one the error is
// fault.NotFound.
func RunAccount(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, run uuid.UUID) (uuid.UUID, error) {
	account, err := dbsqlc.New().TriageRunAccount(ctx, tx, &dbsqlc.TriageRunAccountParams{TenantID: tenant, RunID: run})
	return account, postgres.Found(err, fault.New(fault.NotFound, "no run %s of triage", run))
}

// Filter selects received messages; zero fields match all.
type Filter struct {
	Account, Bucket, Category, Cohort string
	// Sender is an address or a domain, in lower case.
	Sender   string
	Question *bool
	// Has is a kind of finding.
	Has string
	// Expired selects messages with a proposal that expired without a decision
	// and is not repeated.
	Expired bool
	// Label is a label that an owner described.
	Label  string
	Since  time.Time
	Before Place
	Most   int
}

// Messages returns the messages of a filter, newest first.
func Messages(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) ([]wire.TriageMessage, error) {
	rows, err := dbsqlc.New().TriageMessageList(ctx, tx, &dbsqlc.TriageMessageListParams{
		TenantID: tenant, Account: f.Account, Bucket: f.Bucket, Category: f.Category, Cohort: f.Cohort, Sender: f.Sender,
		Question: f.Question, Has: f.Has, Label: f.Label, Expired: f.Expired, Since: postgres.OrNull(f.Since), BeforeAt: postgres.OrNull(f.Before.At),
		BeforeID: postgres.OrNull(f.Before.ID), Most: int64(f.Most),
	})
	return tagged(ctx, tx, tenant, rows, err)
}

// tagged returns the messages of rows, with their tags and the ends of their codes.
func tagged(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, rows []dbsqlc.TriageMessageListRow, err error) ([]wire.TriageMessage, error) {
	messages, err := postgres.TryMap(rows, err, message)
	if err == nil && len(messages) > 0 {
		err = errors.Join(addTags(ctx, tx, tenant, messages), addCodes(ctx, tx, tenant, messages))
	}
	return messages, err
}

func message(r dbsqlc.TriageMessageListRow) (wire.TriageMessage, error) {
	m := wire.TriageMessage{
		ID: r.MessageID, Account: r.Account, Sender: r.Sender, SenderName: r.SenderName, Subject: r.Subject, Outgoing: r.Outgoing,
		ReceivedAt: r.ReceivedAt.UTC(), DecidedAt: postgres.UTC(r.DecidedAt), Act: r.Act, Category: r.Category, Priority: r.Priority,
		Bucket: r.Bucket, Cohort: r.Cohort, Confidence: r.Confidence, Question: r.Question, Proposed: int(r.Proposals), Has: append([]string{}, r.Has...),
	}
	if r.DecidedAt != nil {
		m.Level = decide.Level(r.Level).String()
	}
	var err error
	m.Reason, err = storedReason(r.Decision, r.Signals)
	return m, errors.Join(err, json.Unmarshal(r.Labels, &m.Labels))
}

// storedReason returns the reason of a stored decision; nil for none.
func storedReason(decision, signals []byte) (*wire.TriageReason, error) {
	if decision == nil {
		return nil, nil
	}
	var d decide.Decision
	var found struct{ Symbols []wire.TriageSignal }
	if err := errors.Join(json.Unmarshal(decision, &d), json.Unmarshal(signals, &found)); err != nil {
		return nil, fmt.Errorf("stored decision: %w", err)
	}
	return reason(d, found.Symbols), nil
}

// maxNamed limits the messages of one Message-ID, which senders choose.
const maxNamed = 100

// Named returns the messages with a Message-ID (without angle brackets), newest
// first and at most 100.
func Named(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, headerID string) ([]wire.TriageMessage, error) {
	ids, err := dbsqlc.New().TriageMessageNamed(ctx, tx, &dbsqlc.TriageMessageNamedParams{TenantID: tenant, HeaderID: headerID, Most: maxNamed})
	if err != nil {
		return nil, err
	}
	return pick(ctx, tx, tenant, ids...)
}

func pick(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, ids ...uuid.UUID) ([]wire.TriageMessage, error) {
	rows, err := dbsqlc.New().TriageMessagePick(ctx, tx, &dbsqlc.TriageMessagePickParams{TenantID: tenant, MessageIds: ids})
	found := make([]dbsqlc.TriageMessageListRow, len(rows))
	for i, r := range rows {
		found[i] = dbsqlc.TriageMessageListRow(r)
	}
	return tagged(ctx, tx, tenant, found, err)
}

// Message returns a message with all stored data. For an unknown one the error
// is fault.NotFound.
func Message(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, id uuid.UUID) (wire.TriageMessageDetail, error) {
	q := dbsqlc.New()
	var m wire.TriageMessageDetail
	all, err := pick(ctx, tx, tenant, id)
	if err != nil {
		return m, err
	}
	if len(all) == 0 {
		return m, errNoMessage(id)
	}
	m.TriageMessage = all[0]
	r, err := q.TriageMessageGet(ctx, tx, &dbsqlc.TriageMessageGetParams{TenantID: tenant, MessageID: id})
	if err != nil {
		return m, postgres.Found(err, errNoMessage(id))
	}
	m.HeaderID, m.ThreadID, m.List, m.SentAt, m.Size, m.Body = r.HeaderID, r.ThreadID, r.List, postgres.UTC(r.SentAt), r.Size, r.Body
	m.TouchedAt, m.Undone, m.Model, m.RunID = postgres.UTC(r.TouchedAt), r.Undone, r.Model, postgres.OrNull(r.RunID)
	m.DecidedBecause, m.Tier, m.Prompt, m.Degraded, m.Waiting, m.Withheld = r.Reason, r.Tier, r.Prompt, r.Degraded, r.Wanted, r.Withheld
	m.Answers = []wire.TriageAnswer{}
	if err := errors.Join(decided(&m, r.Decision, r.Signals, r.Notes, r.Skipped), json.Unmarshal(r.Answers, &m.Answers)); err != nil {
		return m, fmt.Errorf("message %s: %w", id, err)
	}
	for i := range m.Answers {
		m.Answers[i].Choices = append([]wire.TriageChoice{}, m.Answers[i].Choices...)
	}
	locations, err := q.TriageLocationList(ctx, tx, &dbsqlc.TriageLocationListParams{TenantID: tenant, MessageID: id})
	if m.Locations, err = postgres.Map(locations, err, func(r dbsqlc.TriageLocationListRow) wire.TriageLocation {
		return wire.TriageLocation{Folder: r.Folder, Flags: r.Flags}
	}); err != nil {
		return m, err
	}
	if m.Proposals, err = proposals(ctx, tx, tenant, id); err != nil {
		return m, err
	}
	if m.Corrections, err = Corrections(ctx, tx, tenant, id); err != nil {
		return m, err
	}
	if m.Texts, err = Texts(ctx, tx, tenant, id); err != nil {
		return m, err
	}
	m.Findings, err = findings(ctx, tx, tenant, m, r.Signals)
	return m, err
}

// decided decodes the columns of a decision. Lists are never nil.
func decided(m *wire.TriageMessageDetail, decision, signals, notes, skips []byte) error {
	var found struct{ Symbols []wire.TriageSignal }
	var read struct {
		Removed     []wire.TriageNote
		Warnings    []string
		Attachments []wire.TriageAttachment
	}
	m.Decision, m.Skips = decision, []wire.TriageSkip{}
	if decision == nil {
		m.Decision = json.RawMessage("null")
	}
	for _, column := range []struct {
		raw  []byte
		into any
	}{{signals, &found}, {notes, &read}, {skips, &m.Skips}} {
		if column.raw == nil {
			continue
		}
		if err := json.Unmarshal(column.raw, column.into); err != nil {
			return err
		}
	}
	m.Signals = append([]wire.TriageSignal{}, found.Symbols...)
	m.Notes, m.Warnings = append([]wire.TriageNote{}, read.Removed...), append([]string{}, read.Warnings...)
	m.Attachments = append([]wire.TriageAttachment{}, read.Attachments...)
	return nil
}

func proposals(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, message uuid.UUID) ([]wire.TriageProposal, error) {
	rows, err := dbsqlc.New().TriageProposalList(ctx, tx, &dbsqlc.TriageProposalListParams{TenantID: tenant, MessageID: message})
	return postgres.TryMap(rows, err, func(r dbsqlc.TriageProposalListRow) (wire.TriageProposal, error) {
		p := wire.TriageProposal{
			ExternalID: r.ExternalID, Repeats: r.Repeats, Action: r.Action, ProposedAt: r.ProposedAt.UTC(), Phase: r.Phase, Problem: r.Problem,
			Fields: []wire.TriageField{}, ActionID: postgres.OrNull(envelope.ActionID(r.ActionID)),
			Reversals: make([]envelope.ActionID, len(r.Reversals)),
		}
		for i, id := range r.Reversals {
			p.Reversals[i] = envelope.ActionID(id)
		}
		var proposed struct{ Tool envelope.Tool }
		if err := errors.Join(json.Unmarshal(r.Fields, &p.Fields), json.Unmarshal(r.Envelope, &proposed)); err != nil {
			return p, fmt.Errorf("proposal %s: %w", r.ExternalID, err)
		}
		p.Tool = proposed.Tool.Source + ":" + proposed.Tool.Name
		return p, nil
	})
}

// Corrections returns the corrections of a message in order.
func Corrections(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, message uuid.UUID) ([]wire.TriageCorrection, error) {
	rows, err := dbsqlc.New().TriageCorrectionList(ctx, tx, &dbsqlc.TriageCorrectionListParams{TenantID: tenant, MessageID: message})
	return postgres.Map(rows, err, func(r dbsqlc.TriageCorrectionListRow) wire.TriageCorrection {
		return wire.TriageCorrection{
			Number: r.CorrectionNo, Head: r.Head, Label: r.Label, MadeBy: envelope.Actor(r.MadeBy), MadeAt: r.MadeAt.UTC(), RetractedAt: postgres.UTC(r.RetractedAt),
		}
	})
}

// correctable returns the heads that people can correct.
func correctable() []classify.Head {
	return []classify.Head{classify.HeadAct, classify.HeadCategory, classify.HeadPriority, classify.HeadUnwanted}
}

// Correct stores a person's correction of a message. For an undecided message
// the error is fault.Conflict.
func Correct(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, message uuid.UUID, in wire.TriageCorrectionInput, by envelope.Actor) (wire.TriageCorrection, error) {
	made := wire.TriageCorrection{Head: in.Head, Label: in.Label, MadeBy: by}
	head := classify.Head(in.Head)
	if !slices.Contains(correctable(), head) {
		return made, check.Invalid("/head", envelope.RuleEnum, "must be act, category, priority or unwanted")
	}
	if !slices.Contains(head.Classes(), in.Label) {
		return made, check.Invalid("/label", envelope.RuleEnum, "must be one of %v", head.Classes())
	}
	if _, err := Message(ctx, tx, tenant, message); err != nil {
		return made, err
	}
	rows, err := dbsqlc.New().TriageCorrectionAdd(ctx, tx, &dbsqlc.TriageCorrectionAddParams{
		TenantID: tenant, MessageID: message, Head: in.Head, Label: in.Label, MadeBy: string(by),
	})
	if err != nil {
		return made, err
	}
	if len(rows) == 0 {
		return made, fault.New(fault.Conflict, "the message has no decision to correct")
	}
	made.Number, made.MadeAt = rows[0].CorrectionNo, rows[0].MadeAt.UTC()
	return made, nil
}

// Retract removes a correction. For an unknown or a removed one the error is
// fault.NotFound.
func Retract(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, message uuid.UUID, number int64) error {
	n, err := dbsqlc.New().TriageCorrectionRetract(ctx, tx, &dbsqlc.TriageCorrectionRetractParams{
		TenantID: tenant, MessageID: message, CorrectionNo: number,
	})
	return postgres.Affected(n, err, fault.New(fault.NotFound, "the message has no correction %d in force", number))
}

func errNoMessage(id uuid.UUID) error { return fault.New(fault.NotFound, "no message %s", id) }
