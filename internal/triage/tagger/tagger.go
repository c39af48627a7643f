// Package tagger has the tries of action tags made: it finds the tags in a
// mailbox, takes the ends of tries into account, and proposes due ones. Each try
// is one envelope. It calls no tool and changes no mailbox.
package tagger

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/asker"
	"github.com/countersign-dev/countersign/internal/triage/lease"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/reader"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

// Tagger makes the tries of one account.
type Tagger struct {
	lease  *lease.Lease
	reader *reader.Reader
	// writer chooses parts of messages; if nil, rules alone do.
	writer asker.Writer
}

// New returns a Tagger for the messages of a reader. writer may be nil.
func New(l *lease.Lease, r *reader.Reader, writer asker.Writer) *Tagger {
	return &Tagger{lease: l, reader: r, writer: writer}
}

// tagged is a stored tag.
type tagged struct {
	tag.Tag
	about  messageID
	action string
}

// tool is the tool of an action.
type tool struct {
	state  string
	fields []tag.Field
	// others are required parameters that no text fills.
	others []string
}

// The states of tools, as the database names them.
const (
	available   = "available"
	missing     = "missing"
	unreachable = "unreachable"
)

// Round makes one round: the owner's tags, the ends of tries, and the oldest due
// tags.
func (t *Tagger) Round(ctx context.Context, run *reader.Run) error {
	err := t.lease.Write(ctx, func(tx pgx.Tx) error {
		return errors.Join(t.takeKeywords(ctx, tx), t.takeEnds(ctx, tx))
	})
	if err != nil || !t.lease.Account.Proposes() {
		return err
	}
	registry := tag.Registry(t.lease.Account.Proposals.Actions)
	var due []tagged
	var tools map[string]tool
	zone := time.UTC
	err = t.lease.Write(ctx, func(tx pgx.Tx) (err error) {
		if tools, zone, err = t.tools(ctx, tx, registry); err != nil {
			return err
		}
		if due, err = t.due(ctx, tx, namesOf(tools, available)); err != nil {
			return err
		}
		return t.skipMissing(ctx, tx, registry, append(namesOf(tools, available), namesOf(tools, unreachable)...))
	})
	if err != nil {
		return err
	}
	if away := namesOf(tools, unreachable); len(away) > 0 {
		t.lease.Log.WarnContext(ctx, "actions of tags wait for their source", slog.Any("actions", away))
	}
	for _, d := range due {
		if err := t.try(ctx, run, d, registry[d.action], tools[d.action], zone); err != nil {
			return err
		}
	}
	return nil
}

// namesOf returns the actions whose tools are in a state.
func namesOf(tools map[string]tool, state string) []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		if tools[name].state == state {
			names = append(names, name)
		}
	}
	return names
}

// believed reports whether the keywords of an account are its owner's: a sender
// can write none of them.
func believed(k account.Kind) bool { return k == account.IMAP || k == account.Maildir }

// try begins the try of a tag, or records why it cannot begin.
func (t *Tagger) try(ctx context.Context, run *reader.Run, d tagged, action tag.Action, with tool, zone *time.Location) error {
	about, err := t.about(ctx, d)
	if err != nil {
		return err
	}
	target, problem, err := t.reader.Target(ctx, about)
	if err != nil {
		return err
	}
	var proposal plan.Proposal
	if problem == "" {
		proposal, err = t.call(ctx, d, about, target, action, with, zone)
		if err != nil {
			problem = err.Error()
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err = t.lease.Write(ctx, func(tx pgx.Tx) error {
		if problem != "" {
			return t.end(ctx, tx, d, tag.Failed, action, outcome{status: statusFailed, problem: problem})
		}
		if stored, err := t.put(ctx, tx, d, tag.Tried, change{external: proposal.ExternalID}); err != nil || !stored {
			return err
		}
		return t.reader.Propose(ctx, tx, run, d.about, proposal)
	})
	if err == nil {
		t.lease.Log.DebugContext(ctx, "try of an action tag", slog.String("message_id", d.about.String()), slog.String("action", d.action), slog.Bool("proposed", problem == ""))
	}
	return err
}

// call returns the proposal of a try.
func (t *Tagger) call(ctx context.Context, d tagged, about reader.Stored, target plan.Target, action tag.Action, with tool, zone *time.Location) (plan.Proposal, error) {
	doubtful := about.Found.Injection || about.Found.Phishing || about.Found.Suspicious
	arguments := tag.Extract(target.Message, with.fields, zone)
	if t.writer != nil && !doubtful {
		chosen, err := choose(ctx, t.writer, target.Message, action, with.fields, zone)
		if err != nil {
			t.lease.Log.InfoContext(ctx, "no model chose the arguments of an action tag", slog.String("error", measure.Problem(err)))
		}
		arguments = tag.Merge(chosen, arguments)
	}
	return plan.Try{
		Name: d.action, Action: action, Number: d.Try, Fields: with.fields, Others: with.others, Arguments: arguments, Zone: zone,
		Confirm: doubtful || t.lease.Account.Settings.ObserveOnly,
	}.Call(target.Message, t.lease.Account.Proposals)
}

// parseTool returns the tool of a state with the fields of its schema.
func parseTool(state string, schema json.RawMessage) (tool, error) {
	with := tool{state: state}
	if state != available {
		return with, nil
	}
	var err error
	with.fields, with.others, err = tag.Fields(schema)
	return with, err
}
