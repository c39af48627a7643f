package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/insight/simulate"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func (s *Server) getPolicy(c *call) error {
	var doc settings.PolicyDocument
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) (err error) {
		doc, err = settings.ExportPolicy(ctx, tx, c.by.Tenant)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, doc)
}

func (s *Server) putPolicy(c *call) error {
	var doc settings.PolicyDocument
	if err := c.decode(&doc); err != nil {
		return err
	}
	dry := c.query.Get("dry_run") == "true"
	changes := []limits.Change{}
	err := s.inTx(c, func(ctx context.Context, tx pgx.Tx) error {
		made, err := s.Catalog.ApplyPolicy(ctx, tx, c.by.Tenant, doc, c.by.Name, dry)
		changes = append(changes[:0], made...)
		return err
	})
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, struct {
		DryRun  bool            `json:"dry_run"`
		Changes []limits.Change `json:"changes"`
	}{dry, changes})
}

// CheckPolicy holds a document of policy, in JSON, to what openapi.yaml and
// policy itself say, as the API does. The error is an *envelope.InvalidError
// whose pointers lead into the document.
func CheckPolicy(text []byte) error {
	l, err := loadLaw()
	if err != nil {
		return err
	}
	if err := l.operations["putPolicy"].checkBody(text); err != nil {
		return err
	}
	var doc settings.PolicyDocument
	if err := (&call{body: text}).decode(&doc); err != nil {
		return err
	}
	return doc.Validate()
}

// rehearseFor is after how long a page of a rehearsal answers with what it
// has: expressions may be costly, and a request has a deadline.
const rehearseFor = 5 * time.Second

// rehearsed is the answer of a rehearsal.
type rehearsed struct {
	simulate.Report
	NextCursor *string `json:"next_cursor"`
}

// simulate tries a policy on the past, in a transaction that cannot write.
func (s *Server) simulate(c *call) error {
	doc, req, err := c.rehearsal(time.Now())
	if err != nil {
		return err
	}
	ctx := c.r.Context()
	var page *simulate.Page
	err = postgres.InTx(ctx, s.DB, postgres.API(c.by.Tenant).ReadOnly(), func(tx pgx.Tx) error {
		page, err = simulate.Read(ctx, tx, s.Catalog, c.by.Tenant, req)
		return err
	})
	if err != nil {
		return err
	}
	if err := within("/policy", page.Snapshot.CheckPolicy(doc)); err != nil {
		return err
	}
	begun := time.Now()
	report := page.Compare(doc.Change(), func() bool { return time.Since(begun) > rehearseFor || ctx.Err() != nil })
	if err := ctx.Err(); err != nil {
		return err
	}
	answer := rehearsed{Report: report}
	if report.Next != nil {
		answer.NextCursor = new(writeCursor(cursorRehearsal, *report.Next))
	}
	return c.json(http.StatusOK, answer)
}

// rehearsal reads what is to be tried, and on which part of the past.
func (c *call) rehearsal(now time.Time) (settings.PolicyDocument, simulate.Request, error) {
	body := struct {
		Policy settings.PolicyDocument `json:"policy"`
		From   time.Time               `json:"from"`
		To     *time.Time              `json:"to"`
		Tool   string                  `json:"tool"`
		Cursor string                  `json:"cursor"`
		Most   int                     `json:"most"`
	}{Tool: "*", Most: simulate.MaxPage}
	if err := c.decode(&body); err != nil {
		return body.Policy, simulate.Request{}, err
	}
	req := simulate.Request{From: body.From, To: now, Most: body.Most}
	if body.To != nil {
		req.To = *body.To
	}
	if !req.From.Before(req.To) {
		return body.Policy, req, invalid("/to", "order", "must be later than from")
	}
	var err error
	if req.Tool, err = policy.ParsePattern(body.Tool); err != nil {
		return body.Policy, req, invalid("/tool", envelope.RuleFormat, "must be source:action, source:*, *:action or *")
	}
	if req.Before, err = parseCursor(cursorRehearsal, body.Cursor); err != nil {
		return body.Policy, req, invalid("/cursor", envelope.RuleFormat, "is not a cursor of a simulation; take next_cursor as it was, or leave it out to begin again")
	}
	return body.Policy, req, nil
}

// within puts the pointers of an error below a place in the body.
func within(pointer string, err error) error {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return err
	}
	fields := make([]envelope.FieldError, len(broken.Fields))
	for i, f := range broken.Fields {
		f.Pointer = pointer + f.Pointer
		fields[i] = f
	}
	return invalidFields(fields)
}
