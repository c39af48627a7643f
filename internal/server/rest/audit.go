package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// verifyAtOnce and exportAtOnce are about how many events one request
	// verifies, or exports. The answer says where to go on.
	verifyAtOnce = 200_000
	exportAtOnce = 50_000
)

func (s *Server) verifyAudit(c *call) error {
	opt := audit.Options{Most: verifyAtOnce}
	var err error
	if text := c.query.Get("after_seal"); text != "" {
		if opt.After, err = strconv.ParseInt(text, 10, 64); err != nil {
			return invalid("/query/after_seal", envelope.RuleType, "must be an integer")
		}
	}
	if text := c.query.Get("head"); text != "" {
		if opt.Noted, err = audit.ParseHash(text); err != nil {
			return invalid("/query/head", envelope.RuleFormat, "must be 64 hexadecimal digits")
		}
	}
	var report audit.Report
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		report, err = audit.Verify(ctx, tx, c.by.Tenant, opt)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, report)
}

// exportQuery reads which events are wanted.
func (c *call) exportQuery() (audit.Span, audit.Place, error) {
	var span audit.Span
	for name, at := range map[string]*time.Time{"from": &span.From, "until": &span.Until} {
		text := c.query.Get(name)
		if text == "" {
			continue
		}
		var err error
		if *at, err = time.Parse(time.RFC3339, text); err != nil {
			return span, audit.Place{}, invalid("/query/"+name, envelope.RuleFormat, "must be a date-time, such as 2026-01-02T03:04:05Z")
		}
	}
	if !span.Until.IsZero() && !span.Until.After(span.From) {
		return span, audit.Place{}, invalid("/query/until", "range", "must be after from")
	}
	text := c.query.Get("after")
	if text == "" {
		return span, audit.Place{}, nil
	}
	after, err := audit.ParsePlace(text)
	if err != nil {
		return span, after, invalid("/query/after", envelope.RuleFormat, "is not the place of an event; take next as it was")
	}
	return span, after, nil
}

// exportAudit writes events as they come from the database, a few hundred at
// a time, so that neither a long range nor a slow reader holds anything up.
func (s *Server) exportAudit(c *call) error {
	span, after, err := c.exportQuery()
	if err != nil {
		return err
	}
	page, err := s.exportPage(c, span, after)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/jsonl")
	c.w.WriteHeader(http.StatusOK)
	closing := audit.Closing{End: true, Tenant: c.by.Tenant}
	for {
		if err := c.writeEntries(page); err != nil {
			return s.exportEnd(c, err)
		}
		closing.Events += int64(len(page))
		if len(page) < audit.ExportRows {
			break
		}
		after = page[len(page)-1].Place
		if closing.Events >= exportAtOnce {
			closing.Next = after.String()
			break
		}
		if page, err = s.exportPage(c, span, after); err != nil {
			return s.exportEnd(c, err)
		}
	}
	return s.exportEnd(c, s.writeClosing(c, closing))
}

// exportPage reads in a transaction of its own.
func (s *Server) exportPage(c *call, span audit.Span, after audit.Place) (page []audit.Entry, err error) {
	ctx, cancel := context.WithTimeout(c.r.Context(), workFor)
	defer cancel()
	return page, postgres.InTx(ctx, s.DB, postgres.API(c.by.Tenant), func(tx pgx.Tx) (err error) {
		page, err = audit.Export(ctx, tx, c.by.Tenant, span, after)
		return err
	})
}

func (c *call) writeEntries(page []audit.Entry) error {
	var lines bytes.Buffer
	for _, e := range page {
		line, err := e.Line()
		if err != nil {
			return err
		}
		lines.Write(line)
	}
	return c.writePiece(lines.Bytes())
}

// writePiece sends a piece of a long answer, within a time of its own: a
// client that does not read is cut off.
func (c *call) writePiece(piece []byte) error {
	control := http.NewResponseController(c.w)
	if err := control.SetWriteDeadline(time.Now().Add(writeFor)); err != nil {
		return err
	}
	if _, err := c.w.Write(piece); err != nil {
		return err
	}
	return control.Flush()
}

func (s *Server) writeClosing(c *call, closing audit.Closing) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), workFor)
	defer cancel()
	err := postgres.InTx(ctx, s.DB, postgres.API(c.by.Tenant), func(tx pgx.Tx) (err error) {
		closing.Head, err = audit.CurrentHead(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	line, err := json.Marshal(closing)
	if err != nil {
		return err
	}
	return c.writePiece(append(line, '\n'))
}

// exportEnd ends an answer that has begun. If it was cut short, the closing
// line is missing, and the reader knows.
func (s *Server) exportEnd(c *call, err error) error {
	if err != nil && c.r.Context().Err() == nil {
		s.cfg.Log.ErrorContext(c.r.Context(), "export cut", slog.String("request_id", requestID(c.r.Context())), slog.Any("error", err))
	}
	return nil
}
