package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

// TagActions returns the actions of every account of a tenant, or of one, in
// order of their names.
func TagActions(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name string) ([]wire.TriageAction, error) {
	var names []string
	if name != "" {
		if _, err := account.Get(ctx, tx, tenant, name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	accounts, err := account.List(ctx, tx, tenant, names...)
	if err != nil {
		return nil, err
	}
	type called struct {
		Source string `json:"source"`
		Tool   string `json:"tool"`
	}
	all, wanted := []wire.TriageAction{}, map[called]string{}
	for _, a := range accounts {
		registry := tag.Registry(a.Proposals.Actions)
		for _, action := range slices.Sorted(maps.Keys(registry)) {
			_, configured := a.Proposals.Actions[action]
			d := registry[action]
			wanted[called{d.Source, d.Tool}] = ""
			all = append(all, wire.TriageAction{
				Account: a.Name, Name: action, Description: d.Description, Source: d.Source, Tool: d.Tool, BuiltIn: !configured,
			})
		}
	}
	raw, err := json.Marshal(slices.Collect(maps.Keys(wanted)))
	if err != nil {
		return nil, err
	}
	tools, err := dbsqlc.New().TriageTagTools(ctx, tx, &dbsqlc.TriageTagToolsParams{TenantID: tenant, Wanted: raw})
	for _, t := range tools {
		wanted[called{t.Source, t.Tool}] = t.State
	}
	for i := range all {
		all[i].State = wanted[called{all[i].Source, all[i].Tool}]
		all[i].Available = all[i].State == "available"
	}
	return all, err
}

// TagFilter selects action tags; zero fields match all.
type TagFilter struct {
	Account string
	// Messages are the messages whose tags match; nil matches all.
	Messages []uuid.UUID
	Action   string
	// State is a state of a tag, or any. Empty matches all but gone.
	State  string
	Before Place
	Most   int
}

// Tags returns the tags of a filter, the latest first.
func Tags(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f TagFilter) ([]wire.TriageTag, error) {
	rows, err := dbsqlc.New().TriageTagList(ctx, tx, &dbsqlc.TriageTagListParams{
		TenantID: tenant, Account: f.Account, MessageIds: f.Messages, Action: f.Action, State: f.State,
		BeforeAt: postgres.OrNull(f.Before.At), BeforeID: postgres.OrNull(f.Before.ID), BeforeAction: f.Before.Name, Most: int64(f.Most),
	})
	return postgres.Map(rows, err, func(r dbsqlc.TriageTagListRow) wire.TriageTag {
		return wire.TriageTag{
			MessageID: r.MessageID, Account: r.Account, Subject: new(beginning(r.Subject)), Action: r.Action, State: r.State, Try: int(r.Try), Failures: int(r.Failures),
			Problem: r.Problem, InMailbox: r.InMailbox, TaggedBy: r.TaggedBy, TaggedAt: r.TaggedAt.UTC(),
		}
	})
}

// maxTags bounds the tags that are shown with messages.
const maxTags = 10_000

// addTags adds their tags to messages.
func addTags(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, messages []wire.TriageMessage) error {
	ids := make([]uuid.UUID, len(messages))
	for i, m := range messages {
		ids[i] = m.ID
	}
	tags, err := Tags(ctx, tx, tenant, TagFilter{Messages: ids, Most: maxTags})
	of := make(map[uuid.UUID][]wire.TriageTag)
	for _, t := range tags {
		of[t.MessageID] = append(of[t.MessageID], t)
	}
	for i := range messages {
		messages[i].Tags = append([]wire.TriageTag{}, of[messages[i].ID]...)
	}
	return err
}

// TryFilter selects rows of the log of tries; zero fields match all.
type TryFilter struct {
	Account string
	Message uuid.UUID
	Action  string
	Status  string
	Before  Place
	Most    int
}

// Tries returns the rows of the log of a filter, newest first, with the ids of
// their accounts.
func Tries(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f TryFilter) (tries []wire.TriageTry, accounts []uuid.UUID, err error) {
	rows, err := dbsqlc.New().TriageTagLogList(ctx, tx, &dbsqlc.TriageTagLogListParams{
		TenantID: tenant, Account: f.Account, MessageID: postgres.OrNull(f.Message), Action: f.Action, Status: f.Status,
		BeforeAt: postgres.OrNull(f.Before.At), BeforeID: postgres.OrNull(f.Before.ID), Most: int64(f.Most),
	})
	tries, err = postgres.TryMap(rows, err, func(r dbsqlc.TriageTagLogListRow) (wire.TriageTry, error) {
		accounts = append(accounts, r.AccountID)
		t := wire.TriageTry{
			ID: r.LogID, MessageID: r.MessageID, Account: r.Account, Subject: new(beginning(r.Subject)), Action: r.Action, Try: int(r.Try), Source: r.SourceID, Tool: r.ToolName,
			Extracted: []wire.TriageField{}, Result: r.Result, Status: r.Status, Error: r.Error, ProcessedAt: r.ProcessedAt.UTC(), ActionID: postgres.OrNull(envelope.ActionID(r.ActionID)),
		}
		if err := json.Unmarshal(r.Extracted, &t.Extracted); err != nil {
			return t, fmt.Errorf("log %s: %w", r.LogID, err)
		}
		return t, nil
	})
	return tries, accounts, err
}

// TagChange is a change of a tag by a person.
type TagChange struct {
	Message uuid.UUID
	Action  string
	// Event is tag.Tagged, tag.Untagged or tag.Retried.
	Event tag.Event
	// Person has to be the operator of the account. Where it names none, NamesOperator
	// has to be set: the person may name the operator. Actor is recorded.
	Person        uuid.UUID
	NamesOperator bool
	Actor         envelope.Actor
}

// ChangeTag stores a tag after a change, and returns it. The error is
// fault.NotFound for an unknown message, action or tag, fault.Denied for a person other than
// the operator of the account, and fault.Conflict if the change cannot happen now.
func ChangeTag(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, c TagChange) (wire.TriageTag, error) {
	var none wire.TriageTag
	rows, err := dbsqlc.New().TriageTagAbout(ctx, tx, &dbsqlc.TriageTagAboutParams{TenantID: tenant, MessageID: c.Message, Action: c.Action})
	if err != nil {
		return none, err
	}
	if len(rows) == 0 {
		return none, errNoMessage(c.Message)
	}
	about := rows[0]
	a, err := account.Get(ctx, tx, tenant, about.Account)
	if err != nil {
		return none, err
	}
	switch {
	case a.Operator == uuid.Nil && !c.NamesOperator:
		return none, fault.New(fault.Denied, "the mail account %s names no operator, who alone sets action tags; an administrator names one (operator_id)", a.Name)
	case a.Operator != uuid.Nil && a.Operator != c.Person:
		return none, fault.New(fault.Denied, "the mail account %s names another person as its operator, who alone sets action tags", a.Name)
	}
	was := tag.Tag{State: tag.State(about.State), Try: int(about.Try), Failures: int(about.Failures)}
	if about.State == "" {
		was = tag.New()
	}
	if err := changeable(c, a, about.State == "", about.Decided); err != nil {
		return none, err
	}
	next, ok := was.Next(c.Event)
	if !ok {
		return none, fault.New(fault.Conflict, "a try of %s is open; it ends before another one begins", c.Action)
	}
	var n int64
	if about.State == "" {
		n, err = dbsqlc.New().TriageTagAdd(ctx, tx, &dbsqlc.TriageTagAddParams{TenantID: tenant, MessageID: c.Message, Action: c.Action, TaggedBy: string(c.Actor)})
	} else {
		n, err = dbsqlc.New().TriageTagSet(ctx, tx, &dbsqlc.TriageTagSetParams{
			TenantID: tenant, MessageID: c.Message, Action: c.Action, State: string(next.State), Failures: int32(next.Failures), TaggedBy: string(c.Actor),
			WasState: string(was.State), WasTry: int32(was.Try),
		})
	}
	if err := postgres.Affected(n, err, fault.New(fault.Conflict, "triage changed the tag meanwhile; read it again")); err != nil {
		return none, err
	}
	tags, err := Tags(ctx, tx, tenant, TagFilter{Messages: []uuid.UUID{c.Message}, Action: c.Action, State: "any", Most: 1})
	if err == nil && len(tags) == 0 {
		err = errNoMessage(c.Message)
	}
	if err != nil {
		return none, err
	}
	return tags[0], nil
}

// changeable returns the reason why a tag cannot be changed.
func changeable(c TagChange, a account.Account, absent, decided bool) error {
	registry := tag.Registry(a.Proposals.Actions)
	_, known := registry[c.Action]
	switch {
	case c.Event == tag.Untagged && absent:
		return fault.New(fault.NotFound, "the message has no tag %q", c.Action)
	case c.Event == tag.Untagged:
		return nil
	case !known:
		return fault.New(fault.NotFound, "no action %q of the account %s; known actions: %s", c.Action, a.Name, strings.Join(slices.Sorted(maps.Keys(registry)), ", "))
	case !decided:
		return fault.New(fault.Conflict, "the message has no decision yet; wait for the next run")
	case !a.Proposes():
		return fault.New(fault.Conflict, "the account %s proposes nothing; set the source in its proposals", a.Name)
	}
	return nil
}

// RetryTag puts back the tag of a failed or skipped row of the log, with a counter
// of 0, and returns it.
func RetryTag(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, log uuid.UUID, c TagChange) (wire.TriageTag, error) {
	rows, err := dbsqlc.New().TriageTagLogGet(ctx, tx, &dbsqlc.TriageTagLogGetParams{TenantID: tenant, LogID: log})
	if err != nil {
		return wire.TriageTag{}, err
	}
	if len(rows) == 0 {
		return wire.TriageTag{}, fault.New(fault.NotFound, "no try %s", log)
	}
	if rows[0].Succeeded {
		return wire.TriageTag{}, fault.New(fault.Conflict, "a try of %s has succeeded; set the tag again to repeat the action", rows[0].Action)
	}
	c.Message, c.Action, c.Event = rows[0].MessageID, rows[0].Action, tag.Retried
	return ChangeTag(ctx, tx, tenant, c)
}
