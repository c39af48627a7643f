package label

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/classify"
)

const (
	// maxPast limits the messages on which a label is tried, maxText the
	// characters of each body, maxOthers the background of a classifier, and
	// maxKnown the examples of an account.
	maxPast   = 2000
	maxText   = 8000
	maxOthers = 200
	maxKnown  = 2000
	// maxShown limits the matches that a try shows.
	maxShown = 20
	// set is the number of messages that are matched in one transaction.
	set = 200
)

// List returns the labels of an account that are in force.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID) ([]wire.TriageLabel, error) {
	rows, err := dbsqlc.New().TriageLabelExist(ctx, tx, &dbsqlc.TriageLabelExistParams{TenantID: tenant, AccountID: account})
	return postgres.TryMap(rows, err, func(r dbsqlc.TriageLabelExistRow) (wire.TriageLabel, error) {
		var d Definition
		err := json.Unmarshal(r.Definition, &d)
		return wire.TriageLabel{
			Name: r.Name, Description: d.Description, Words: d.Words, SetBy: envelope.Actor(r.SetBy), SetAt: r.SetAt.UTC(), MatchedAt: postgres.UTC(r.MatchedAt),
			Applied: r.Applied, Proposed: r.Proposed, Confirmed: r.Confirmed, Rejected: r.Rejected,
		}, err
	})
}

// Try matches a definition with the past messages of an account, and records that
// it was tried. Nothing gets the label.
func Try(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, name string, d Definition, by envelope.Actor) (wire.TriageLabelTrial, error) {
	trial := wire.TriageLabelTrial{Cohorts: []wire.TriageLabelCohort{}, Items: []wire.TriageLabelMatch{}}
	d = d.normal()
	digest, err := d.digest()
	if err := cmp.Or(d.check(), err); err != nil {
		return trial, err
	}
	yes, no, err := examples(ctx, tx, tenant, account, d)
	if err != nil {
		return trial, err
	}
	others, err := background(ctx, tx, tenant, account)
	if err != nil {
		return trial, err
	}
	q := dbsqlc.New()
	past, err := q.TriageLabelPast(ctx, tx, &dbsqlc.TriageLabelPastParams{TenantID: tenant, AccountID: account, Characters: maxText, Most: maxPast})
	if err != nil {
		return trial, err
	}
	c := newClassifier(name, d, yes, no, others)
	counts := map[string]*wire.TriageLabelCohort{}
	for _, r := range past {
		n := counts[r.Cohort]
		if n == nil {
			n = &wire.TriageLabelCohort{Cohort: r.Cohort, State: r.State}
			counts[r.Cohort] = n
		}
		n.Messages++
		trial.Messages++
		found, ok := c.match(messageOf(r.MessageID, r.Sender, r.SenderName, r.Subject, r.Body, r.Features))
		if !ok {
			continue
		}
		n.Matched++
		trial.Matched++
		if len(trial.Items) < maxShown {
			trial.Items = append(trial.Items, wire.TriageLabelMatch{
				MessageID: r.MessageID, ReceivedAt: r.ReceivedAt.UTC(), Sender: r.Sender, Subject: r.Subject, Cohort: r.Cohort,
				TriageMessageLabel: wire.TriageMessageLabel{Label: name, State: r.State, Score: found.Score, Because: found.Because},
			})
		}
	}
	for _, n := range counts {
		trial.Cohorts = append(trial.Cohorts, *n)
	}
	slices.SortFunc(trial.Cohorts, func(a, b wire.TriageLabelCohort) int { return cmp.Compare(a.Cohort, b.Cohort) })
	return trial, q.TriageLabelTried(ctx, tx, &dbsqlc.TriageLabelTriedParams{TenantID: tenant, AccountID: account, Name: name, Tried: digest, SetBy: string(by)})
}

// Put sets a definition, which then holds for past and new messages. Unless it was
// tried or untried is set, the error is fault.Conflict.
func Put(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, name string, d Definition, untried bool, by envelope.Actor) (wire.TriageLabel, error) {
	d = d.normal()
	digest, err := d.digest()
	if err := cmp.Or(d.check(), err); err != nil {
		return wire.TriageLabel{}, err
	}
	q := dbsqlc.New()
	was, err := q.TriageLabelWasTried(ctx, tx, &dbsqlc.TriageLabelWasTriedParams{TenantID: tenant, AccountID: account, Name: name, Tried: digest})
	if err != nil {
		return wire.TriageLabel{}, err
	}
	if !untried && (len(was) == 0 || !was[0].Tried) {
		return wire.TriageLabel{}, fault.New(fault.Conflict, "this definition was not tried last; try it first, or set untried")
	}
	if _, _, err := examples(ctx, tx, tenant, account, d); err != nil {
		return wire.TriageLabel{}, err
	}
	stored, err := json.Marshal(Definition{Description: d.Description, Words: d.Words})
	if err != nil {
		return wire.TriageLabel{}, err
	}
	if err := q.TriageLabelPut(ctx, tx, &dbsqlc.TriageLabelPutParams{TenantID: tenant, AccountID: account, Name: name, Definition: stored, SetBy: string(by)}); err != nil {
		return wire.TriageLabel{}, err
	}
	if err := q.TriageLabelReset(ctx, tx, &dbsqlc.TriageLabelResetParams{TenantID: tenant, AccountID: account, Label: name}); err != nil {
		return wire.TriageLabel{}, err
	}
	for holds, about := range map[bool][]uuid.UUID{true: d.For, false: d.Against} {
		if _, err := q.TriageLabelJudge(ctx, tx, &dbsqlc.TriageLabelJudgeParams{TenantID: tenant, Label: name, Holds: holds, DecidedBy: new(string(by)), MessageIds: about}); err != nil {
			return wire.TriageLabel{}, err
		}
	}
	all, err := List(ctx, tx, tenant, account)
	if err == nil && len(all) > maxLabels {
		err = fault.New(fault.Conflict, "the account already has %d labels", maxLabels)
	}
	if err != nil {
		return wire.TriageLabel{}, err
	}
	return all[slices.IndexFunc(all, func(l wire.TriageLabel) bool { return l.Name == name })], nil
}

// Delete deletes a label with its matches. For an unknown one the error is
// fault.NotFound.
func Delete(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, name string) error {
	n, err := dbsqlc.New().TriageLabelDelete(ctx, tx, &dbsqlc.TriageLabelDeleteParams{TenantID: tenant, AccountID: account, Name: name})
	return postgres.Affected(n, err, errNone(name))
}

// Judge stores whether a message gets a label, as its owner decides. The message is
// then an example. For an unknown label or message the error is fault.NotFound.
func Judge(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, message uuid.UUID, name string, holds bool, by envelope.Actor) (wire.TriageMessageLabel, error) {
	rows, err := dbsqlc.New().TriageLabelJudge(ctx, tx, &dbsqlc.TriageLabelJudgeParams{TenantID: tenant, Label: name, Holds: holds, DecidedBy: new(string(by)), MessageIds: []uuid.UUID{message}})
	if err != nil {
		return wire.TriageMessageLabel{}, err
	}
	if len(rows) == 0 {
		return wire.TriageMessageLabel{}, fault.New(fault.NotFound, "no message %s with a decision, or no label %q of its account", message, name)
	}
	state := "rejected"
	if holds {
		state = "confirmed"
	}
	return wire.TriageMessageLabel{Label: name, State: state, Score: 1, Because: []string{}}, nil
}

func errNone(name string) error { return fault.New(fault.NotFound, "no label %q", name) }

// examples returns the features of a definition's examples. A message that is not
// one of the account, or has no decision, is an error.
func examples(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, d Definition) (yes, no []classify.Features, err error) {
	rows, err := dbsqlc.New().TriageLabelFeatures(ctx, tx, &dbsqlc.TriageLabelFeaturesParams{TenantID: tenant, AccountID: account, MessageIds: slices.Concat(d.For, d.Against)})
	if err != nil {
		return nil, nil, err
	}
	if len(rows) < len(d.For)+len(d.Against) {
		return nil, nil, check.Invalid("/for", envelope.RuleEnum, "has a message that the account did not receive")
	}
	for _, r := range rows {
		if slices.Contains(d.For, r.MessageID) {
			yes = append(yes, featuresOf(r.Features))
		} else {
			no = append(no, featuresOf(r.Features))
		}
	}
	return yes, no, nil
}

// background returns the features of messages that are no examples.
func background(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID) ([]classify.Features, error) {
	rows, err := dbsqlc.New().TriageLabelBackground(ctx, tx, &dbsqlc.TriageLabelBackgroundParams{TenantID: tenant, AccountID: account, Most: maxOthers})
	return postgres.Map(rows, err, featuresOf)
}

// featuresOf decodes features. Those of another version are empty, so that the
// words of a label still count.
func featuresOf(stored []byte) (f classify.Features) {
	if f.UnmarshalBinary(stored) != nil {
		return classify.Features{}
	}
	return f
}

func messageOf(id uuid.UUID, sender, name, subject, body string, features []byte) message {
	return message{id: id, text: sender + "\n" + name + "\n" + subject + "\n" + body, features: featuresOf(features)}
}

// Pending reports whether messages of an account are to be matched.
func Pending(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID) (bool, error) {
	return dbsqlc.New().TriageLabelWork(ctx, tx, &dbsqlc.TriageLabelWorkParams{TenantID: tenant, AccountID: account})
}

// Round makes the past messages of new definitions due, or matches a set of due
// messages with the labels of their account. Answers of a model about that set add
// matches. It runs under the account's lease, so that no message appears meanwhile.
func Round(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, answers []Answer) error {
	q := dbsqlc.New()
	held, err := q.TriageLabelHold(ctx, tx, &dbsqlc.TriageLabelHoldParams{TenantID: tenant, AccountID: account})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(held, func(r dbsqlc.TriageLabelHoldRow) bool { return r.Fresh }) {
		return q.TriageLabelDue(ctx, tx, &dbsqlc.TriageLabelDueParams{TenantID: tenant, AccountID: account})
	}
	due, err := q.TriageLabelTake(ctx, tx, &dbsqlc.TriageLabelTakeParams{TenantID: tenant, AccountID: account, Characters: maxText, Most: set})
	if err != nil || len(due) == 0 || len(held) == 0 {
		return err
	}
	all, err := classifiers(ctx, tx, tenant, account, held)
	if err != nil {
		return err
	}
	matches, chosen := []Match{}, proposedBy(answers, held)
	for _, r := range due {
		m := messageOf(r.MessageID, r.Sender, r.SenderName, r.Subject, r.Body, r.Features)
		for _, c := range all {
			found, ok := c.match(m)
			if !ok && chosen[m.id] == c.name && !c.rejects(m) {
				found, ok = Match{Message: m.id, Label: c.name, Score: 0.5, Because: []string{forModel}}, true
			}
			if ok {
				matches = append(matches, found)
			}
		}
	}
	raw, err := json.Marshal(matches)
	if err != nil {
		return err
	}
	return q.TriageLabelMatch(ctx, tx, &dbsqlc.TriageLabelMatchParams{TenantID: tenant, AccountID: account, Matches: raw})
}

// classifiers returns those of the labels in force.
func classifiers(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, held []dbsqlc.TriageLabelHoldRow) (all []*classifier, err error) {
	known, err := dbsqlc.New().TriageLabelExamples(ctx, tx, &dbsqlc.TriageLabelExamplesParams{TenantID: tenant, AccountID: account, Most: maxKnown})
	if err != nil {
		return nil, err
	}
	others, err := background(ctx, tx, tenant, account)
	if err != nil {
		return nil, err
	}
	yes, no := map[string][]classify.Features{}, map[string][]classify.Features{}
	for _, r := range known {
		side := no
		if r.Holds {
			side = yes
		}
		if len(side[r.Label]) < maxExamples {
			side[r.Label] = append(side[r.Label], featuresOf(r.Features))
		}
	}
	for _, r := range held {
		var d Definition
		if err := json.Unmarshal(r.Definition, &d); err != nil {
			return nil, fmt.Errorf("definition of the label %s: %w", r.Name, err)
		}
		all = append(all, newClassifier(r.Name, d, yes[r.Name], no[r.Name], others))
	}
	return all, nil
}
