package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
)

// maxEntry bounds a line of an export, in bytes: an event may be about a
// thousand actions.
const maxEntry = 16 << 20

// VerifyAudit compares the events after a checkpoint with the hash chain; 0 is
// the beginning. head, unless it is empty, is a head of the chain from an
// earlier report, which the chain must still contain. The report's Next is the
// checkpoint to continue after.
func (c *Client) VerifyAudit(ctx context.Context, after int64, head string) (wire.AuditReport, error) {
	return read[wire.AuditReport](ctx, c, "/api/v1/audit/verify", given("after_checkpoint", number(int(after)), "head", head))
}

// AuditFilter selects events; its zero fields select all.
type AuditFilter struct {
	Kind string
	// Actor and Subject match a part of the text, in any case.
	Actor, Subject string
	Action         uuid.UUID
	Since, Until   time.Time
	// Limit is the size of a page; zero means 50.
	Limit int
	// Cursor is the NextCursor of the page before.
	Cursor string
}

// AuditLog lists events, newest first. A page may be short, or empty, and still
// have a NextCursor.
func (c *Client) AuditLog(ctx context.Context, f AuditFilter) (wire.Page[wire.AuditEvent], error) {
	action := ""
	if f.Action != uuid.Nil {
		action = f.Action.String()
	}
	return read[wire.Page[wire.AuditEvent]](ctx, c, "/api/v1/audit/log", given("kind", f.Kind, "actor", f.Actor, "subject", f.Subject,
		"action_id", action, "since", moment(f.Since), "until", moment(f.Until), "limit", number(f.Limit), "cursor", f.Cursor))
}

// NoteHead records that a head of the chain was noted for storage elsewhere. For
// a head noted before, the first time is kept.
func (c *Client) NoteHead(ctx context.Context, head wire.AuditHead) error {
	in := struct {
		Hash string `json:"hash"`
	}{head.Hash}
	return c.tell(ctx, http.MethodPut, "/api/v1/audit/heads/"+number(int(head.Checkpoint)), nil, in)
}

// AuditRange is the part of the events to export: from From on, before Until,
// after a place. Zero fields do not bound it.
type AuditRange struct {
	From, Until time.Time
	After       string
}

// ExportAudit calls line for each event of a range, with one line of JSON. The
// closing's Next is the position to continue at. An error of line ends the export.
func (c *Client) ExportAudit(ctx context.Context, r AuditRange, line func([]byte) error) (wire.AuditClosing, error) {
	ctx, alive, stop := c.withSilence(ctx)
	defer stop()
	query := given("since", moment(r.From), "until", moment(r.Until), "cursor", r.After)
	answer, err := c.send(ctx, request{method: http.MethodGet, path: "/api/v1/audit/events", query: query})
	if err != nil {
		return wire.AuditClosing{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxEntry)
	for lines.Scan() {
		alive()
		if bytes.HasPrefix(lines.Bytes(), []byte(`{"end":`)) {
			var closing wire.AuditClosing
			if err := json.Unmarshal(lines.Bytes(), &closing); err != nil {
				return closing, errors.New("the export's last line is not what this version expects")
			}
			return closing, nil
		}
		if err := line(lines.Bytes()); err != nil {
			return wire.AuditClosing{}, err
		}
	}
	err = lines.Err()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == nil {
		err = errors.New("the export was cut off before its last line")
	}
	return wire.AuditClosing{}, &UnreachableError{URL: c.String(), Cause: err}
}
