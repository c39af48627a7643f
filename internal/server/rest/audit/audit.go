// Package audit handles requests about the audit log and the retention of data.
package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

const (
	// verifyAtOnce and exportAtOnce are the approximate numbers of events that one
	// request verifies or exports. The response has the position at which the next
	// one begins.
	verifyAtOnce = 200_000
	exportAtOnce = 50_000
)

// Verify handles GET /api/v1/audit/verify. It verifies the hash chain of the
// audit log.
func Verify(c *request.Call) error {
	opt := audit.Options{Limit: verifyAtOnce}
	var err error
	if text := c.Query.Get("after_checkpoint"); text != "" {
		if opt.After, err = strconv.ParseInt(text, 10, 64); err != nil {
			return request.Invalid("/query/after_checkpoint", envelope.RuleType, "must be an integer")
		}
	}
	if text := c.Query.Get("head"); text != "" {
		if opt.KnownHead, err = audit.ParseHash(text); err != nil {
			return request.Invalid("/query/head", envelope.RuleFormat, "must be 64 hexadecimal digits")
		}
		// A hash of zeros would stand for no head, and nothing would be compared.
		if opt.KnownHead == (audit.Hash{}) {
			return request.Invalid("/query/head", envelope.RuleFormat, "must not be zeros; give the hash of a head")
		}
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (audit.Report, error) {
		return audit.Verify(ctx, tx, c.By.Tenant, opt)
	})
}

// NoteHead handles PUT /api/v1/audit/heads/{checkpoint_no}. It records that a
// head of the chain was noted elsewhere.
func NoteHead(c *request.Call, body wire.AuditHead) error {
	head := audit.Head{}
	var err error
	if head.Checkpoint, err = strconv.ParseInt(c.R.PathValue("checkpoint_no"), 10, 64); err != nil {
		return request.Invalid("/path/checkpoint_no", envelope.RuleType, "must be an integer")
	}
	if head.Hash, err = audit.ParseHash(body.Hash); err != nil {
		return request.Invalid("/hash", envelope.RuleFormat, "must be 64 hexadecimal digits")
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.AuditNotedHead, error) {
		at, err := audit.NoteHead(ctx, tx, c.By.Tenant, head)
		return wire.AuditNotedHead{AuditHead: wire.AuditHead{Checkpoint: head.Checkpoint, Hash: body.Hash}, NotedAt: at}, err
	})
}

// Log handles GET /api/v1/audit/log. It lists events, newest first.
func Log(c *request.Call) error {
	q := c.Query
	f := audit.Filter{Kind: audit.Kind(q.Get("kind")), Actor: q.Get("actor"), Subject: q.Get("subject")}
	var err error
	if f.From, f.Until, err = c.QueryRange(); err != nil {
		return err
	}
	if f.Most, err = c.Limit(); err != nil {
		return err
	}
	if text := q.Get("action_id"); text != "" {
		if f.Action.UnmarshalText([]byte(text)) != nil {
			return request.Invalid("/query/action_id", envelope.RuleFormat, "must be a UUID")
		}
	}
	if text := q.Get("cursor"); text != "" {
		if f.Before, err = audit.ParsePosition(text); err != nil {
			return request.Invalid("/query/cursor", envelope.RuleFormat, "is not the position of an event; send next_cursor unchanged")
		}
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.Page[wire.AuditEvent], error) {
		events, next, err := audit.List(ctx, tx, c.By.Tenant, f)
		page := wire.Page[wire.AuditEvent]{Items: events}
		if next != (audit.Position{}) {
			page.NextCursor = new(next.String())
		}
		return page, err
	})
}

// exportQuery reads the range of an export from the query.
func exportQuery(c *request.Call) (audit.Span, audit.Position, error) {
	var span audit.Span
	var err error
	if span.From, span.Until, err = c.QueryRange(); err != nil {
		return span, audit.Position{}, err
	}
	text := c.Query.Get("cursor")
	if text == "" {
		return span, audit.Position{}, nil
	}
	after, err := audit.ParsePosition(text)
	if err != nil {
		return span, after, request.Invalid("/query/cursor", envelope.RuleFormat, "is not the position of an event; send next unchanged")
	}
	return span, after, nil
}

// Export handles GET /api/v1/audit/events. It exports events as they come from
// the database, a few hundred at a time, so that neither a long range nor a
// slow reader holds a transaction open.
func Export(c *request.Call) error {
	span, after, err := exportQuery(c)
	if err != nil {
		return err
	}
	page, err := exportPage(c, span, after)
	if err != nil {
		return err
	}
	c.W.Header().Set("Content-Type", "application/jsonl")
	c.W.WriteHeader(http.StatusOK)
	closing := audit.Closing{End: true, Tenant: c.By.Tenant}
	for {
		if err := writeEntries(c, page); err != nil {
			return c.EndExport(err)
		}
		closing.Events += int64(len(page))
		if len(page) < audit.ExportRows {
			break
		}
		after = page[len(page)-1].Position
		if closing.Events >= exportAtOnce {
			closing.Next = after.String()
			break
		}
		if page, err = exportPage(c, span, after); err != nil {
			return c.EndExport(err)
		}
	}
	return c.EndExport(writeClosing(c, closing))
}

// exportPage reads the next events in a transaction of its own.
func exportPage(c *request.Call, span audit.Span, after audit.Position) (page []audit.Entry, err error) {
	return page, c.InOwnTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		page, err = audit.Export(ctx, tx, c.By.Tenant, span, after)
		return err
	})
}

func writeEntries(c *request.Call, page []audit.Entry) error {
	var lines bytes.Buffer
	for _, e := range page {
		line, err := e.Line()
		if err != nil {
			return err
		}
		lines.Write(line)
	}
	return c.WritePiece(lines.Bytes())
}

func writeClosing(c *request.Call, closing audit.Closing) error {
	err := c.InOwnTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		closing.Head, err = audit.CurrentHead(ctx, tx, c.By.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	line, err := json.Marshal(closing)
	if err != nil {
		return err
	}
	return c.WritePiece(append(line, '\n'))
}
