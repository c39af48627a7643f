package limits

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/openapi"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// cursorContacts is the name of the do-not-contact list in cursors.
const cursorContacts = "do-not-contact"

// DoNotContact handles GET /api/v1/do-not-contact. It lists the do-not-contact
// list.
func DoNotContact(c *request.Call) error {
	q := c.Query
	most, err := c.Limit()
	if err != nil {
		return err
	}
	f := contact.EntryFilter{Kind: contact.Kind(q.Get("kind")), Prefix: q.Get("prefix"), Expired: q.Get("expired") == "true", Most: most + 1}
	if f.AfterKind, f.AfterValue, err = parseContactCursor(q.Get("cursor")); err != nil {
		return err
	}
	rows, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) ([]contact.Entry, error) {
		return contact.Entries(ctx, tx, c.By.Tenant, f)
	})
	if err != nil {
		return err
	}
	p := wire.Page[contact.Entry]{Items: rows}
	if len(rows) > most {
		p.Items = rows[:most]
		p.NextCursor = new(writeContactCursor(rows[most-1]))
	}
	return c.JSON(http.StatusOK, p)
}

// writeContactCursor returns the cursor of the place after an entry. It
// contains the entry, which every reader of the list may see.
func writeContactCursor(last contact.Entry) string {
	return request.WriteTextCursor(cursorContacts, string(last.Kind)+":"+last.Value)
}

// parseContactCursor returns the entry of a cursor; "" is the beginning.
func parseContactCursor(text string) (contact.Kind, string, error) {
	if text == "" {
		return "", "", nil
	}
	rest, err := request.ParseTextCursor(cursorContacts, text, "/query/cursor")
	if err != nil {
		return "", "", err
	}
	kind, value, found := strings.Cut(rest, ":")
	if !found || openapi.Unstorable("", rest) != nil {
		return "", "", request.Invalid("/query/cursor", envelope.RuleFormat, "is not a cursor of this list; send next_cursor unchanged, or omit it to start over")
	}
	return contact.Kind(kind), value, nil
}

// entries is a body with entries of the list; the note is of their removal.
type entries struct {
	Entries []contact.Entry
	Note    string
}

// AddDoNotContact handles POST /api/v1/do-not-contact. It adds entries to the
// do-not-contact list.
func AddDoNotContact(c *request.Call) error {
	var body entries
	if err := c.Decode(&body); err != nil {
		return err
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.ContactCount, error) {
		return admitted(ctx, tx, c, body.Entries, contact.PutEntries)
	})
}

// RemoveDoNotContact handles POST /api/v1/do-not-contact/remove. It removes
// entries from the do-not-contact list.
func RemoveDoNotContact(c *request.Call) error {
	var body entries
	if err := c.Decode(&body); err != nil {
		return err
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.ContactCount, error) {
		return admitted(ctx, tx, c, body.Entries, func(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, all []contact.Entry, by envelope.Actor) (wire.ContactCount, error) {
			return contact.DeleteEntries(ctx, tx, tenant, all, body.Note, by)
		})
	})
}

// CheckDoNotContact handles POST /api/v1/do-not-contact/check. It looks up a
// recipient in the do-not-contact list.
func CheckDoNotContact(c *request.Call, body wire.ContactText) error {
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.ContactCheck, error) {
		return contact.Check(ctx, tx, c.By.Tenant, body.Value)
	})
}

// admitted changes entries of the list, if the caller may.
func admitted(
	ctx context.Context, tx pgx.Tx, c *request.Call, entries []contact.Entry,
	change func(context.Context, pgx.Tx, envelope.TenantID, []contact.Entry, envelope.Actor) (wire.ContactCount, error),
) (wire.ContactCount, error) {
	// No other transaction changes an entry between the comparison and the write.
	if err := c.LockConfiguration(ctx, tx); err != nil {
		return wire.ContactCount{}, err
	}
	if access.ChangesFreely(c.By) {
		return change(ctx, tx, c.By.Tenant, entries, c.By.Actor())
	}
	before, err := contact.Ends(ctx, tx, c.By.Tenant, entries)
	if err != nil {
		return wire.ContactCount{}, err
	}
	counts, err := change(ctx, tx, c.By.Tenant, entries, c.By.Actor())
	if err != nil {
		return counts, err
	}
	after, err := contact.Ends(ctx, tx, c.By.Tenant, entries)
	if err != nil {
		return counts, err
	}
	return counts, access.AdmitChanges(c.By, access.CompareContacts(before, after))
}

// errDryRun rolls a dry run back.
var errDryRun = errors.New("dry run")

// ImportDoNotContact handles POST /api/v1/do-not-contact/import. It adds the
// entries of a CSV file to the do-not-contact list, all or none.
func ImportDoNotContact(c *request.Call) error {
	dry := c.Query.Get("dry_run") == "true"
	var counts wire.ContactCount
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		var err error
		if counts, err = importCSV(ctx, tx, c); err == nil && dry {
			err = errDryRun
		}
		return err
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return err
	}
	return c.JSON(http.StatusOK, counts)
}

// importCSV stores the entries of the body, all or none.
func importCSV(ctx context.Context, tx pgx.Tx, c *request.Call) (wire.ContactCount, error) {
	var total wire.ContactCount
	settings, err := limits.TenantOf(ctx, tx, c.By.Tenant)
	if err != nil {
		return total, err
	}
	r, err := contact.NewCSVReader(bytes.NewReader(c.Body), settings.ContactOptions())
	if err != nil {
		return total, invalidLines(err)
	}
	var wrong []error
	for {
		some, bad, err := readEntries(r)
		if wrong = append(wrong, bad...); len(wrong) > 0 && (errors.Is(err, io.EOF) || len(wrong) >= check.MaxProblems) {
			return total, invalidLines(wrong...)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return total, err
		}
		counts, failed := admitted(ctx, tx, c, some, contact.PutEntries)
		if failed != nil {
			return total, failed
		}
		total.Added, total.Changed = total.Added+counts.Added, total.Changed+counts.Changed
		if err != nil {
			return total, nil
		}
	}
}

// readEntries reads as many entries as one statement stores, and the errors of
// invalid lines between them. At the end err is io.EOF.
func readEntries(r *contact.CSVReader) (some []contact.Entry, wrong []error, err error) {
	for len(some)+len(wrong) < contact.MaxEntries {
		e, _, err := r.Read()
		if _, bad := errors.AsType[*contact.LineError](err); bad {
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

// invalidLines returns the field errors of invalid lines.
func invalidLines(wrong ...error) error {
	var found check.Problems
	for _, err := range wrong {
		if errors.Is(err, io.EOF) {
			return request.Invalid("", envelope.RuleRequired, "must have a first line that names the columns")
		}
		bad, ok := errors.AsType[*contact.LineError](err)
		if !ok {
			return err
		}
		at := "/lines/" + strconv.Itoa(bad.Line) + "/columns/" + strconv.Itoa(bad.Column)
		found.Add(at, envelope.RuleFormat, "%s", bad.Message)
	}
	return found.Err()
}

// completeTrailer is the trailer of a complete export.
const completeTrailer = "Countersign-Complete"

// ExportDoNotContact handles GET /api/v1/do-not-contact/export. It exports the
// do-not-contact list as CSV, as it comes from the database, so that neither a
// long list nor a slow reader holds a transaction open.
func ExportDoNotContact(c *request.Call) error {
	f := contact.EntryFilter{Expired: true, Most: contact.MaxEntries}
	rows, err := contactPage(c, f)
	if err != nil {
		return err
	}
	c.W.Header().Set("Content-Type", openapi.CSV+"; charset=utf-8; header=present")
	c.W.Header().Set("Content-Disposition", `attachment; filename="do-not-contact.csv"`)
	c.W.Header().Set("Trailer", completeTrailer)
	c.W.WriteHeader(http.StatusOK)
	var piece bytes.Buffer
	out, err := contact.NewCSVWriter(&piece)
	for err == nil {
		if err = out.Write(rows...); err != nil {
			break
		}
		if err = c.WritePiece(piece.Bytes()); err != nil {
			break
		}
		if len(rows) < f.Most {
			c.W.Header().Set(completeTrailer, "true")
			return nil
		}
		piece.Reset()
		last := rows[len(rows)-1]
		f.AfterKind, f.AfterValue = last.Kind, last.Value
		rows, err = contactPage(c, f)
	}
	return c.EndExport(err)
}

// contactPage reads the next entries in a transaction of its own.
func contactPage(c *request.Call, f contact.EntryFilter) (rows []contact.Entry, err error) {
	return rows, c.InOwnTx(func(ctx context.Context, tx pgx.Tx) (err error) {
		rows, err = contact.Entries(ctx, tx, c.By.Tenant, f)
		return err
	})
}
