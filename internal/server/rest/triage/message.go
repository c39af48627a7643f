package triage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
)

// ActionMail returns the messages that actions of triage are about.
func ActionMail(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, actions ...envelope.ActionID) (map[envelope.ActionID]*wire.ActionMail, error) {
	return inspect.Mail(ctx, tx, tenant, actions...)
}

// CheckEdit checks arguments that a person wrote in place of those of an action,
// if triage proposed it or its source is a mailbox.
func CheckEdit(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, action envelope.ActionID, args json.RawMessage) error {
	return inspect.CheckEdit(ctx, tx, tenant, action, args)
}

// Status handles GET /api/v1/triage/status. It shows whether and when accounts
// are read, or the reason why they are not.
func Status(c *request.Call) error {
	return request.AnswerItems(c, func(ctx context.Context, tx pgx.Tx) ([]wire.TriageStatus, error) {
		return inspect.Status(ctx, tx, c.By.Tenant, c.Query.Get("account"), time.Now())
	})
}

// AskRun handles POST /api/v1/triage/accounts/{name}/runs.
func AskRun(c *request.Call) error { return askRun(c, inspect.AskRun) }

// RetrySetAside handles POST /api/v1/triage/accounts/{name}/set-aside.
func RetrySetAside(c *request.Call) error { return askRun(c, inspect.RetrySetAside) }

// SetAside handles GET /api/v1/triage/accounts/{name}/set-aside.
func SetAside(c *request.Call) error {
	return request.AnswerItems(c, func(ctx context.Context, tx pgx.Tx) ([]wire.TriageSetAside, error) {
		a, err := account.Get(ctx, tx, c.By.Tenant, c.R.PathValue("name"))
		if err != nil {
			return nil, err
		}
		return inspect.SetAside(ctx, tx, c.By.Tenant, a.ID)
	})
}

// askRun writes the status of an account after a run was requested.
func askRun(c *request.Call, ask func(context.Context, pgx.Tx, envelope.TenantID, uuid.UUID) error) error {
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageStatus, error) {
		name := c.R.PathValue("name")
		a, err := account.Get(ctx, tx, c.By.Tenant, name)
		if err != nil {
			return wire.TriageStatus{}, err
		}
		if !a.Enabled {
			return wire.TriageStatus{}, fault.New(fault.Conflict, "the account %s is disabled; enable it first", name)
		}
		if err := ask(ctx, tx, c.By.Tenant, a.ID); err != nil {
			return wire.TriageStatus{}, err
		}
		all, err := inspect.Status(ctx, tx, c.By.Tenant, name, time.Now())
		if err != nil || len(all) == 0 {
			return wire.TriageStatus{}, err
		}
		return all[0], nil
	})
}

// Runs handles GET /api/v1/triage/accounts/{name}/runs. It lists the runs of an
// account.
func Runs(c *request.Call) error {
	return page(c, "triage-runs", func(ctx context.Context, tx pgx.Tx, before inspect.Place, most int) ([]wire.TriageRun, error) {
		a, err := account.Get(ctx, tx, c.By.Tenant, c.R.PathValue("name"))
		if err != nil {
			return nil, err
		}
		return inspect.Runs(ctx, tx, c.By.Tenant, a.ID, before, most)
	}, func(r wire.TriageRun) inspect.Place { return inspect.Place{At: r.StartedAt, ID: r.ID} })
}

// Messages handles GET /api/v1/triage/messages. It lists the messages that came
// in.
func Messages(c *request.Call) error {
	q := c.Query
	since, err := c.QueryTime("since")
	if err != nil {
		return err
	}
	f := inspect.Filter{
		Account: q.Get("account"), Bucket: q.Get("bucket"), Category: q.Get("category"), Cohort: q.Get("cohort"),
		Sender: strings.ToLower(q.Get("from")), Label: q.Get("label"), Since: since, Has: q.Get("has"), Expired: q.Get("expired") == "true",
	}
	if name := strings.Trim(q.Get("header_id"), "<>"); name != "" {
		return named(c, name)
	}
	if text := q.Get("question"); text != "" {
		f.Question = new(text == "true")
	}
	return page(c, "triage-messages", func(ctx context.Context, tx pgx.Tx, before inspect.Place, most int) ([]wire.TriageMessage, error) {
		f.Before, f.Most = before, most
		return inspect.Messages(ctx, tx, c.By.Tenant, f)
	}, func(m wire.TriageMessage) inspect.Place { return inspect.Place{At: m.ReceivedAt, ID: m.ID} })
}

// named answers with the messages that have a Message-ID.
func named(c *request.Call, name string) error {
	if len(c.Query) > 1 {
		return request.Invalid("/query/header_id", "alone", "cannot be combined with other parameters")
	}
	all, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) ([]wire.TriageMessage, error) {
		return inspect.Named(ctx, tx, c.By.Tenant, name)
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.Page[wire.TriageMessage]{Items: all})
}

// page answers with a page of a list in order of time, newest first.
func page[T any](c *request.Call, list string, read func(context.Context, pgx.Tx, inspect.Place, int) ([]T, error), place func(T) inspect.Place) error {
	limit, err := c.Limit()
	if err != nil {
		return err
	}
	before, err := parsePlace(list, c.Query.Get("cursor"))
	if err != nil {
		return err
	}
	rows, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) ([]T, error) { return read(ctx, tx, before, limit+1) })
	if err != nil {
		return err
	}
	p := wire.Page[T]{Items: rows}
	if len(rows) > limit {
		p.Items = rows[:limit]
		last := place(rows[limit-1])
		p.NextCursor = new(writePlace(list, last))
	}
	return c.JSON(http.StatusOK, p)
}

// writePlace returns the cursor of a place.
func writePlace(list string, p inspect.Place) string {
	text := fmt.Sprintf("%d/%s", p.At.UnixMicro(), p.ID)
	if p.Name != "" {
		text += "/" + p.Name
	}
	return request.WriteTextCursor(list, text)
}

// parsePlace returns the place of a cursor; "" is the beginning.
func parsePlace(list, cursor string) (inspect.Place, error) {
	return parsePlaceAt(list, cursor, "/query/cursor")
}

func parsePlaceAt(list, cursor, pointer string) (inspect.Place, error) {
	if cursor == "" {
		return inspect.Place{}, nil
	}
	text, err := request.ParseTextCursor(list, cursor, pointer)
	if err != nil {
		return inspect.Place{}, err
	}
	micros, id, _ := strings.Cut(text, "/")
	id, name, _ := strings.Cut(id, "/")
	at, numberErr := strconv.ParseInt(micros, 10, 64)
	message, idErr := uuid.Parse(id)
	if numberErr != nil || idErr != nil {
		return inspect.Place{}, request.Invalid(pointer, envelope.RuleFormat, "is not a cursor of this list; send next_cursor unchanged, or omit it to start over")
	}
	return inspect.Place{At: time.UnixMicro(at), ID: message, Name: name}, nil
}

// detail reads the message of the path.
func detail(c *request.Call) (wire.TriageMessageDetail, error) {
	return request.Read(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageMessageDetail, error) { return read(ctx, tx, c) })
}

func read(ctx context.Context, tx pgx.Tx, c *request.Call) (wire.TriageMessageDetail, error) {
	id, err := c.UUID()
	if err != nil {
		return wire.TriageMessageDetail{}, err
	}
	return inspect.Message(ctx, tx, c.By.Tenant, id)
}

// Message handles GET /api/v1/triage/messages/{id}. It shows a message with
// its decision.
func Message(c *request.Call) error {
	return c.Result(detail(c))
}

// Why handles GET /api/v1/triage/messages/{id}/why. It explains the decision
// about a message, with the policy decisions about the actions that the caller
// may see.
func Why(c *request.Call) error {
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageWhy, error) {
		m, err := read(ctx, tx, c)
		if err != nil {
			return wire.TriageWhy{}, err
		}
		var ids []envelope.ActionID
		for _, p := range m.Proposals {
			if p.ActionID != nil {
				ids = append(ids, *p.ActionID)
			}
		}
		views, err := access.Views(ctx, tx, c.By, ids...)
		if err != nil {
			return wire.TriageWhy{}, err
		}
		policies := make(map[envelope.ActionID]wire.PolicyDecision, len(views))
		for _, v := range views {
			policies[v.Envelope.ActionID] = wire.PolicyDecision{Mode: v.Mode, Source: v.ModeSource, Trace: policy.Steps(v.Trace)}
		}
		return inspect.Explain(m, policies)
	})
}

// Corrections handles GET /api/v1/triage/messages/{id}/corrections. It lists
// people's corrections of a message.
func Corrections(c *request.Call) error {
	m, err := detail(c)
	if err != nil {
		return err
	}
	return request.Items(c, m.Corrections)
}

// Correct handles POST /api/v1/triage/messages/{id}/corrections. It corrects
// the classification of a message.
func Correct(c *request.Call, in wire.TriageCorrectionInput) error {
	id, err := c.UUID()
	if err != nil {
		return err
	}
	made, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageCorrection, error) {
		made, err := inspect.Correct(ctx, tx, c.By.Tenant, id, in, c.By.Actor())
		if err != nil {
			return made, err
		}
		c.Detail = map[string]any{"correction_no": made.Number, "head": in.Head, "label": in.Label}
		return made, c.RecordChange(ctx, tx, "triage message "+id.String()+" corrected")
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, made)
}

// Texts handles GET /api/v1/triage/messages/{id}/texts. It lists the texts that
// were requested for a message.
func Texts(c *request.Call) error {
	m, err := detail(c)
	if err != nil {
		return err
	}
	return request.Items(c, m.Texts)
}

// AskText handles POST /api/v1/triage/messages/{id}/texts. It requests a
// summary or a draft.
func AskText(c *request.Call, in wire.TriageTextInput) error {
	id, err := c.UUID()
	if err != nil {
		return err
	}
	asked, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageText, error) {
		asked, err := inspect.AskText(ctx, tx, c.By.Tenant, id, in, c.By.Actor())
		if err != nil {
			return asked, err
		}
		c.Detail = map[string]any{"text_no": asked.Number, "kind": asked.Kind}
		return asked, c.RecordChange(ctx, tx, "triage message "+id.String()+" text asked for")
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusCreated, asked)
}

// Retract handles DELETE
// /api/v1/triage/messages/{id}/corrections/{correction_no}. It takes a
// correction back.
func Retract(c *request.Call) error {
	id, err := c.UUID()
	if err != nil {
		return err
	}
	number, err := strconv.ParseInt(c.R.PathValue("correction_no"), 10, 64)
	if err != nil {
		return request.Invalid("/path/correction_no", envelope.RuleType, "must be an integer")
	}
	if err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := inspect.Retract(ctx, tx, c.By.Tenant, id, number); err != nil {
			return err
		}
		c.Detail = map[string]any{"correction_no": number}
		return c.RecordChange(ctx, tx, "triage message "+id.String()+" correction taken back")
	}); err != nil {
		return err
	}
	return c.NoContent()
}
