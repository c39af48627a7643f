package triage

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

// Actions handles GET /api/v1/triage/actions. It lists the actions of tags.
func Actions(c *request.Call) error {
	return request.AnswerItems(c, func(ctx context.Context, tx pgx.Tx) ([]wire.TriageAction, error) {
		return inspect.TagActions(ctx, tx, c.By.Tenant, c.Query.Get("account"))
	})
}

// AvailableActions handles GET /api/actions/available. It lists the actions of
// tags as other mail programs do.
func AvailableActions(c *request.Call) error {
	return request.AnswerItems(c, func(ctx context.Context, tx pgx.Tx) ([]wire.ActionDefinition, error) {
		all, err := inspect.TagActions(ctx, tx, c.By.Tenant, c.Query.Get("account"))
		return request.Map(all, func(a wire.TriageAction) wire.ActionDefinition {
			return wire.ActionDefinition{Name: a.Name, Description: a.Description, Server: a.Source, Tool: a.Tool, Available: a.Available, Account: a.Account}
		}), err
	})
}

// Tags handles GET /api/v1/triage/tags. It lists action tags.
func Tags(c *request.Call) error {
	f := inspect.TagFilter{Account: c.Query.Get("account"), Action: c.Query.Get("action"), State: c.Query.Get("state")}
	message, err := queryUUID(c, "message_id")
	if err != nil {
		return err
	}
	if message != uuid.Nil {
		f.Messages = []uuid.UUID{message}
	}
	return page(c, "triage-tags", func(ctx context.Context, tx pgx.Tx, before inspect.Place, most int) ([]wire.TriageTag, error) {
		f.Before, f.Most = before, most
		tags, err := inspect.Tags(ctx, tx, c.By.Tenant, f)
		for i := range tags {
			tags[i] = shownTag(c, tags[i])
		}
		return tags, err
	}, func(t wire.TriageTag) inspect.Place {
		return inspect.Place{At: t.TaggedAt, ID: t.MessageID, Name: t.Action}
	})
}

// shownTag returns a tag as the caller may see it.
func shownTag(c *request.Call, t wire.TriageTag) wire.TriageTag {
	if !access.ReadsMail(c.By) {
		t.Subject = nil
	}
	return t
}

// queryUUID returns a parameter of the query; zero if it is absent.
func queryUUID(c *request.Call, name string) (uuid.UUID, error) {
	text := c.Query.Get(name)
	if text == "" {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(text)
	if err != nil {
		return uuid.Nil, request.Invalid("/query/"+name, envelope.RuleFormat, "must be a UUID")
	}
	return id, nil
}

// Tries handles GET /api/v1/triage/tries. It lists the ends of tries.
func Tries(c *request.Call) error {
	return tries(c, func(t wire.TriageTry, _ uuid.UUID) wire.TriageTry { return t }, func(t wire.TriageTry) inspect.Place {
		return inspect.Place{At: t.ProcessedAt, ID: t.ID}
	})
}

// ActionLog handles GET /api/actions/log. It lists the ends of tries as other mail
// programs do.
func ActionLog(c *request.Call) error {
	return tries(c, func(t wire.TriageTry, account uuid.UUID) wire.ActionLogEntry {
		return wire.ActionLogEntry{
			ID: t.ID, MessageID: t.MessageID, AccountID: account, MessageSubject: t.Subject, ActionName: t.Action, Server: t.Source, Tool: t.Tool,
			ExtractedData: argsOf(t.Extracted), ToolResult: t.Result, Status: t.Status, Error: t.Error, ProcessedAt: t.ProcessedAt,
		}
	}, func(e wire.ActionLogEntry) inspect.Place { return inspect.Place{At: e.ProcessedAt, ID: e.ID} })
}

// tries answers with a page of the log, in a representation.
func tries[T any](c *request.Call, show func(wire.TriageTry, uuid.UUID) T, place func(T) inspect.Place) error {
	f := inspect.TryFilter{Account: c.Query.Get("account"), Action: c.Query.Get("action"), Status: c.Query.Get("status")}
	var err error
	if f.Message, err = queryUUID(c, "message_id"); err != nil {
		return err
	}
	return page(c, "triage-tries", func(ctx context.Context, tx pgx.Tx, before inspect.Place, most int) ([]T, error) {
		f.Before, f.Most = before, most
		all, accounts, err := inspect.Tries(ctx, tx, c.By.Tenant, f)
		shown := make([]T, len(all))
		for i, t := range all {
			shown[i] = show(shownTry(c, t), accounts[i])
		}
		return shown, err
	}, place)
}

// shownTry returns a row of the log as the caller may see it: without text of
// mail for those who may not read it.
func shownTry(c *request.Call, t wire.TriageTry) wire.TriageTry {
	if access.ReadsMail(c.By) {
		return t
	}
	t.Subject, t.Result = nil, json.RawMessage("null")
	for i := range t.Extracted {
		if t.Extracted[i].Origin != string(plan.Literal) {
			t.Extracted[i].Value, t.Extracted[i].Ref = redacted, ""
		}
	}
	return t
}

// redacted stands for the text of an argument.
const redacted = "[REDACTED]"

// argsOf returns fields as the arguments of a call; {} if they are of none.
func argsOf(fields []wire.TriageField) json.RawMessage {
	rows := request.Map(fields, func(f wire.TriageField) plan.Row {
		return plan.Row{Pointer: f.Pointer, Value: f.Value, Origin: plan.Origin(f.Origin), Ref: f.Ref}
	})
	args, err := plan.Args(rows)
	if err != nil {
		return json.RawMessage("{}")
	}
	return args
}

// SetTag handles PUT /api/v1/triage/messages/{id}/tags/{action}. It sets an
// action tag.
func SetTag(c *request.Call) error {
	t, err := changeTag(c, tag.Tagged, "set")
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, t)
}

// RemoveTag handles DELETE /api/v1/triage/messages/{id}/tags/{action}. It removes an
// action tag.
func RemoveTag(c *request.Call) error {
	if _, err := changeTag(c, tag.Untagged, "removed"); err != nil {
		return err
	}
	return c.NoContent()
}

// changeTag changes the tag of the path.
func changeTag(c *request.Call, event tag.Event, word string) (wire.TriageTag, error) {
	id, err := c.UUID()
	if err != nil {
		return wire.TriageTag{}, err
	}
	return request.Read(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageTag, error) {
		t, err := inspect.ChangeTag(ctx, tx, c.By.Tenant, inspect.TagChange{
			Message: id, Action: c.R.PathValue("action"), Event: event, Person: c.By.Person(), NamesOperator: c.By.MayLoosen(), Actor: c.By.Actor(),
		})
		if err != nil {
			return t, err
		}
		return shownTag(c, t), recordTag(ctx, tx, c, t, word)
	})
}

// recordTag records a change of a tag by a person.
func recordTag(ctx context.Context, tx pgx.Tx, c *request.Call, t wire.TriageTag, word string) error {
	c.Detail = map[string]any{"action": t.Action, "state": t.State}
	return c.RecordChange(ctx, tx, "triage message "+t.MessageID.String()+" action tag "+word)
}

// RetryTag handles POST /api/v1/triage/tries/{log_id}/retry and
// POST /api/actions/retry/{log_id}. It puts a tag back.
func RetryTag(c *request.Call) error {
	id, err := uuid.Parse(c.R.PathValue("log_id"))
	if err != nil {
		return request.Invalid("/path/log_id", envelope.RuleFormat, "must be a UUID")
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageTag, error) {
		t, err := inspect.RetryTag(ctx, tx, c.By.Tenant, id, inspect.TagChange{Person: c.By.Person(), NamesOperator: c.By.MayLoosen(), Actor: c.By.Actor()})
		if err != nil {
			return t, err
		}
		return shownTag(c, t), recordTag(ctx, tx, c, t, "retried")
	})
}
