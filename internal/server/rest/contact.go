package rest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

func (s *Server) listDoNotContact(c *call) error {
	q := c.query
	most, err := c.most()
	if err != nil {
		return err
	}
	f := limits.EntryFilter{Kind: preflight.ContactKind(q.Get("kind")), Prefix: q.Get("prefix"), Expired: q.Get("expired") == "true", Most: most + 1}
	if f.AfterKind, f.AfterValue, err = parseContactCursor(q.Get("cursor")); err != nil {
		return err
	}
	var rows []limits.Entry
	err = s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		rows, err = limits.Entries(ctx, tx, c.by.Tenant, f)
		return err
	})
	if err != nil {
		return err
	}
	p := page[limits.Entry]{Items: rows}
	if len(rows) > most {
		p.Items = rows[:most]
		p.NextCursor = new(writeContactCursor(rows[most-1]))
	}
	return c.json(http.StatusOK, p)
}

// writeContactCursor writes the place behind an entry. It can be read by
// whoever may read the list.
func writeContactCursor(last limits.Entry) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + ":" + cursorContacts + ":" + string(last.Kind) + ":" + last.Value))
}

// parseContactCursor reads what writeContactCursor wrote; "" is the beginning.
func parseContactCursor(text string) (preflight.ContactKind, string, error) {
	if text == "" {
		return "", "", nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	rest, ok := strings.CutPrefix(string(raw), cursorVersion+":"+cursorContacts+":")
	kind, value, found := strings.Cut(rest, ":")
	if err != nil || !ok || !found || unstorable("", rest) != nil {
		return "", "", invalid("/query/cursor", envelope.RuleFormat, "is not a cursor of this list; take next_cursor as it was, or leave it out to begin again")
	}
	return preflight.ContactKind(kind), value, nil
}

// entries is a body with entries of the list.
type entries struct{ Entries []limits.Entry }

func (s *Server) addDoNotContact(c *call) error { return s.contacts(c, limits.PutEntries) }

func (s *Server) removeDoNotContact(c *call) error { return s.contacts(c, limits.DeleteEntries) }

func (s *Server) contacts(c *call, change func(context.Context, pgx.Tx, envelope.TenantID, []limits.Entry, string) (limits.Tally, error)) error {
	var body entries
	if err := c.decode(&body); err != nil {
		return err
	}
	var tally limits.Tally
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		tally, err = change(ctx, tx, c.by.Tenant, body.Entries, c.by.Name)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, tally)
}

// errDry rolls a rehearsal back.
var errDry = errors.New("it was a rehearsal")

func (s *Server) importDoNotContact(c *call) error {
	dry := c.query.Get("dry_run") == "true"
	var tally limits.Tally
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if tally, err = importCSV(ctx, tx, c); err == nil && dry {
			err = errDry
		}
		return err
	})
	if err != nil && !errors.Is(err, errDry) {
		return err
	}
	return c.json(http.StatusOK, tally)
}

// importCSV stores the entries of the body, all of them or none.
func importCSV(ctx context.Context, tx pgx.Tx, c *call) (limits.Tally, error) {
	var total limits.Tally
	settings, err := limits.TenantOf(ctx, tx, c.by.Tenant)
	if err != nil {
		return total, err
	}
	r, err := limits.NewCSVReader(bytes.NewReader(c.body), settings)
	if err != nil {
		return total, invalidLines(err)
	}
	var wrong []error
	for {
		some, bad, err := readSome(r)
		if wrong = append(wrong, bad...); len(wrong) > 0 && (errors.Is(err, io.EOF) || len(wrong) >= maxErrors) {
			return total, invalidLines(wrong...)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return total, err
		}
		tally, failed := limits.PutEntries(ctx, tx, c.by.Tenant, some, c.by.Name)
		if failed != nil {
			return total, failed
		}
		total.Added, total.Changed = total.Added+tally.Added, total.Changed+tally.Changed
		if err != nil {
			return total, nil
		}
	}
}

// readSome reads as many entries as one statement stores, and what is wrong
// between them. At the end the error is io.EOF.
func readSome(r *limits.CSVReader) (some []limits.Entry, wrong []error, err error) {
	for len(some)+len(wrong) < limits.MaxEntries {
		e, _, err := r.Read()
		if _, bad := errors.AsType[*limits.LineError](err); bad {
			wrong = append(wrong, err)
			continue
		}
		if err != nil {
			return some, wrong, err
		}
		some = append(some, e)
	}
	return some, wrong, nil
}

// invalidLines says in the API's way which lines are wrong.
func invalidLines(wrong ...error) error {
	var fields []envelope.FieldError
	for _, err := range wrong {
		if errors.Is(err, io.EOF) {
			return invalid("", envelope.RuleRequired, "must have a first line that names the columns")
		}
		bad, ok := errors.AsType[*limits.LineError](err)
		if !ok {
			return err
		}
		at := "/lines/" + strconv.Itoa(bad.Line) + "/columns/" + strconv.Itoa(bad.Column)
		fields = append(fields, envelope.FieldError{Pointer: at, Rule: envelope.RuleFormat, Message: bad.Message})
	}
	return invalidFields(fields)
}

// completeTrailer says behind an export that nothing is missing from it.
const completeTrailer = "Countersign-Complete"

// exportDoNotContact writes the list as it comes from the database, so that
// neither a long one nor a slow reader holds anything up.
func (s *Server) exportDoNotContact(c *call) error {
	f := limits.EntryFilter{Expired: true, Most: limits.MaxEntries}
	rows, err := s.contactPage(c, f)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", csvType+"; charset=utf-8; header=present")
	c.w.Header().Set("Content-Disposition", `attachment; filename="do-not-contact.csv"`)
	c.w.Header().Set("Trailer", completeTrailer)
	c.w.WriteHeader(http.StatusOK)
	var piece bytes.Buffer
	out, err := limits.NewCSVWriter(&piece)
	for err == nil {
		if err = out.Write(rows...); err != nil {
			break
		}
		if err = c.writePiece(piece.Bytes()); err != nil {
			break
		}
		if len(rows) < f.Most {
			c.w.Header().Set(completeTrailer, "true")
			return nil
		}
		piece.Reset()
		last := rows[len(rows)-1]
		f.AfterKind, f.AfterValue = last.Kind, last.Value
		rows, err = s.contactPage(c, f)
	}
	return s.exportEnd(c, err)
}

// contactPage reads in a transaction of its own.
func (s *Server) contactPage(c *call, f limits.EntryFilter) (rows []limits.Entry, err error) {
	ctx, cancel := context.WithTimeout(c.r.Context(), workFor)
	defer cancel()
	return rows, postgres.InTx(ctx, s.DB, postgres.API(c.by.Tenant), func(tx pgx.Tx) (err error) {
		rows, err = limits.Entries(ctx, tx, c.by.Tenant, f)
		return err
	})
}
