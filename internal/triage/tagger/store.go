package tagger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/reader"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

type messageID = uuid.UUID

// byMailbox is who set the tags that are keywords of a mailbox.
const byMailbox = "mailbox"

// The statuses of the log.
const (
	statusSuccess = "success"
	statusFailed  = "failed"
	statusSkipped = "skipped"
)

// change holds the changes of an event besides the state of a tag. A nil
// inMailbox keeps the stored value.
type change struct {
	external, problem string
	inMailbox         *bool
}

// outcome is the end of a try.
type outcome struct {
	status, problem, external, source, tool string
	result                                  json.RawMessage
}

// put stores a tag after an event. It reports false if the event cannot happen,
// or if the tag has changed meanwhile.
func (t *Tagger) put(ctx context.Context, tx pgx.Tx, d tagged, e tag.Event, c change) (bool, error) {
	next, ok := d.Next(e)
	if !ok {
		return false, nil
	}
	n, err := dbsqlc.New().TriageTagPut(ctx, tx, &dbsqlc.TriageTagPutParams{
		TenantID: t.lease.Tenant, MessageID: d.about, Action: d.action, AccountID: t.lease.Account.ID, State: string(next.State), Try: int32(next.Try),
		Failures: int32(next.Failures), InMailbox: c.inMailbox, ExternalID: c.external, Problem: c.problem, TaggedBy: byMailbox,
		WasState: string(d.State), WasTry: int32(d.Try),
	})
	return n > 0, err
}

// end stores the end of a try, and its row of the log.
func (t *Tagger) end(ctx context.Context, tx pgx.Tx, d tagged, e tag.Event, action tag.Action, o outcome) error {
	if stored, err := t.put(ctx, tx, d, e, change{}); err != nil || !stored {
		return err
	}
	o.source, o.tool = action.Source, action.Tool
	return t.log(ctx, tx, d, o)
}

func (t *Tagger) log(ctx context.Context, tx pgx.Tx, d tagged, o outcome) error {
	var result json.RawMessage
	if len(o.result) > 0 {
		result = o.result
	}
	return dbsqlc.New().TriageTagLogInsert(ctx, tx, &dbsqlc.TriageTagLogInsertParams{
		TenantID: t.lease.Tenant, LogID: uuid.Must(uuid.NewV7()), AccountID: t.lease.Account.ID, MessageID: d.about, Action: d.action, Try: int32(d.Try),
		ExternalID: o.external, SourceID: o.source, ToolName: o.tool, Result: result, Status: o.status, Error: postgres.Text(o.problem),
	})
}

// takeKeywords takes the tags that appeared in the mailbox or disappeared.
func (t *Tagger) takeKeywords(ctx context.Context, tx pgx.Tx) error {
	rows, err := dbsqlc.New().TriageTagKeywords(ctx, tx, &dbsqlc.TriageTagKeywordsParams{
		TenantID: t.lease.Tenant, AccountID: t.lease.Account.ID, Prefix: mailbox.ActionTag, Believed: believed(t.lease.Account.Kind),
	})
	for _, r := range rows {
		d := tagged{Tag: tag.Tag{State: tag.State(r.State), Try: int(r.Try), Failures: int(r.Failures)}, about: r.MessageID, action: r.Action}
		if r.State == "" {
			d.Tag = tag.New()
		}
		event := tag.Untagged
		if r.Present {
			event = tag.Tagged
		}
		if _, putErr := t.put(ctx, tx, d, event, change{inMailbox: &r.Present}); putErr != nil {
			return putErr
		}
	}
	return err
}

// takeEnds takes the ends of tries.
func (t *Tagger) takeEnds(ctx context.Context, tx pgx.Tx) error {
	if err := dbsqlc.New().TriageTagLock(ctx, tx, &dbsqlc.TriageTagLockParams{TenantID: t.lease.Tenant, AccountID: t.lease.Account.ID}); err != nil {
		return err
	}
	rows, err := dbsqlc.New().TriageTagTries(ctx, tx, &dbsqlc.TriageTagTriesParams{TenantID: t.lease.Tenant, AccountID: t.lease.Account.ID})
	for _, r := range rows {
		event, status := endOf(r.Outcome)
		problem := r.Problem
		switch {
		case status == statusSuccess:
			problem = ""
		case problem == "" || event == tag.Stopped:
			problem = r.Outcome
		}
		d := tagged{Tag: tag.Tag{State: tag.State(r.State), Try: int(r.Try), Failures: int(r.Failures)}, about: r.MessageID, action: r.Action}
		action := tag.Action{Source: r.SourceID, Tool: r.ToolName}
		if endErr := t.end(ctx, tx, d, event, action, outcome{status: status, problem: problem, external: r.ExternalID, result: r.Result}); endErr != nil {
			return endErr
		}
	}
	return err
}

// endOf returns the event of an outcome, and its status in the log.
func endOf(of string) (tag.Event, string) {
	switch of {
	case "sent", "conflict":
		return tag.Succeeded, statusSuccess
	case "denied", "expired", "undone", "skipped":
		return tag.Stopped, statusSkipped
	}
	return tag.Failed, statusFailed
}

// tools returns the tools of actions and the owner's time zone.
func (t *Tagger) tools(ctx context.Context, tx pgx.Tx, registry map[string]tag.Action) (map[string]tool, *time.Location, error) {
	type name struct {
		Source string `json:"source"`
		Tool   string `json:"tool"`
	}
	wanted := []name{}
	for _, a := range registry {
		if n := (name{a.Source, a.Tool}); !slices.Contains(wanted, n) {
			wanted = append(wanted, n)
		}
	}
	raw, err := json.Marshal(wanted)
	if err != nil {
		return nil, nil, err
	}
	rows, err := dbsqlc.New().TriageTagAvailable(ctx, tx, raw)
	if err != nil {
		return nil, nil, err
	}
	zone, tools := time.UTC, make(map[string]tool, len(registry))
	for _, r := range rows {
		if found, err := time.LoadLocation(r.Zone); err == nil {
			zone = found
		}
		with, err := parseTool(r.State, r.InputSchema)
		if err != nil {
			return nil, nil, fmt.Errorf("schema of %s:%s: %w", r.Source, r.Tool, err)
		}
		for action, a := range registry {
			if a.Source == r.Source && a.Tool == r.Tool {
				tools[action] = with
			}
		}
	}
	return tools, zone, nil
}

// due returns the oldest due tags of actions.
func (t *Tagger) due(ctx context.Context, tx pgx.Tx, actions []string) (due []tagged, err error) {
	most := t.lease.Account.Proposals.MaxActions
	if most == 0 {
		most = tag.DefaultMax
	}
	rows, err := dbsqlc.New().TriageTagsDue(ctx, tx, &dbsqlc.TriageTagsDueParams{TenantID: t.lease.Tenant, AccountID: t.lease.Account.ID, Actions: actions, Most: int64(most)})
	for _, r := range rows {
		due = append(due, tagged{Tag: tag.Tag{State: tag.State(r.State), Try: int(r.Try), Failures: int(r.Failures)}, about: r.MessageID, action: r.Action})
	}
	return due, err
}

// skipMissing records once for each tag that its action has no tool. The tag stays
// due, and no failure counts.
func (t *Tagger) skipMissing(ctx context.Context, tx pgx.Tx, registry map[string]tag.Action, others []string) error {
	rows, err := dbsqlc.New().TriageTagsUnavailable(ctx, tx, &dbsqlc.TriageTagsUnavailableParams{TenantID: t.lease.Tenant, AccountID: t.lease.Account.ID, Others: others})
	for _, r := range rows {
		action, known := registry[r.Action]
		problem := "no tool " + action.Source + ":" + action.Tool
		if !known {
			problem = "no action " + r.Action
		}
		d := tagged{Tag: tag.Tag{State: tag.State(r.State), Try: int(r.Try), Failures: int(r.Failures)}, about: r.MessageID, action: r.Action}
		stored, putErr := t.put(ctx, tx, d, tag.Tagged, change{problem: problem})
		if putErr == nil && stored {
			putErr = t.log(ctx, tx, d, outcome{status: statusSkipped, problem: problem, source: action.Source, tool: action.Tool})
		}
		if putErr != nil {
			return putErr
		}
		t.lease.Log.WarnContext(ctx, "an action of a tag has no tool", "message_id", d.about.String(), "action", r.Action)
	}
	return err
}

// about returns the message of a tag.
func (t *Tagger) about(ctx context.Context, d tagged) (about reader.Stored, err error) {
	err = t.lease.Tx(ctx, func(tx pgx.Tx) error {
		all, err := t.reader.Stored(ctx, tx, []uuid.UUID{d.about})
		if err == nil && len(all) == 0 {
			err = errors.New("a tagged message has no decision")
		}
		if err == nil {
			about = all[0]
		}
		return err
	})
	return about, err
}
