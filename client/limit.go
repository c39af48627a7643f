package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source/breaker"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// The paths of the limits.
const (
	bucketsPath      = "/api/v1/buckets"
	quietHoursPath   = "/api/v1/quiet-hours"
	doNotContactPath = "/api/v1/do-not-contact"
	employeesPath    = "/api/v1/employees"
	pausesPath       = "/api/v1/pauses"
	breakersPath     = "/api/v1/breakers"
	limitsPath       = "/api/v1/limits"
)

// Buckets lists the buckets with what is used of them, retired ones among
// them.
func (c *Client) Buckets(ctx context.Context) ([]limits.BucketState, error) {
	return listOf[limits.BucketState](ctx, c, bucketsPath)
}

// Bucket reads a bucket with what is used of it.
func (c *Client) Bucket(ctx context.Context, name string) (limits.BucketState, error) {
	var b limits.BucketState
	_, err := c.do(ctx, request{method: http.MethodGet, path: bucketsPath + "/" + url.PathEscape(name)}, &b)
	return b, err
}

// PutBucket makes a bucket, or sets its limits anew.
func (c *Client) PutBucket(ctx context.Context, b limits.Bucket) error {
	in := struct {
		Rate        *limits.Rate     `json:"rate,omitempty"`
		Calendar    *limits.Calendar `json:"calendar,omitempty"`
		Concurrency int              `json:"concurrency,omitzero"`
	}{b.Rate, b.Calendar, b.Concurrency}
	return c.tell(ctx, http.MethodPut, bucketsPath+"/"+url.PathEscape(b.Name), nil, in)
}

// RetireBucket lets no new actions into a bucket.
func (c *Client) RetireBucket(ctx context.Context, name string) error {
	return c.tell(ctx, http.MethodDelete, bucketsPath+"/"+url.PathEscape(name), nil, nil)
}

// ReopenBucket ends the hold that a provider's answer put on a bucket.
func (c *Client) ReopenBucket(ctx context.Context, name string) error {
	return c.tell(ctx, http.MethodPost, bucketsPath+"/"+url.PathEscape(name)+"/reopen", nil, nil)
}

// QuietHours lists the quiet hours.
func (c *Client) QuietHours(ctx context.Context) ([]limits.QuietHours, error) {
	return listOf[limits.QuietHours](ctx, c, quietHoursPath)
}

// PutQuietHours sets quiet hours instead of those of the same scope and
// subject.
func (c *Client) PutQuietHours(ctx context.Context, h limits.QuietHours) error {
	return c.tell(ctx, http.MethodPut, quietHoursPath, nil, h)
}

// DeleteQuietHours removes quiet hours.
func (c *Client) DeleteQuietHours(ctx context.Context, scope limits.QuietScope, subject string) error {
	return c.tell(ctx, http.MethodDelete, quietHoursPath, given("scope", string(scope), "subject", subject), nil)
}

// ContactFilter narrows a list of do-not-contact entries; its zero fields do
// not.
type ContactFilter struct {
	Kind, Prefix string
	// Expired takes in entries that no longer count.
	Expired bool
	// Limit is how many a page holds; zero means 50.
	Limit int
	// Cursor is the NextCursor of the page before.
	Cursor string
}

// Contacts lists do-not-contact entries in order of kind and value.
func (c *Client) Contacts(ctx context.Context, f ContactFilter) (Page[contact.Entry], error) {
	query := given("kind", f.Kind, "prefix", f.Prefix, "cursor", f.Cursor)
	limited(query, f.Limit)
	if f.Expired {
		query.Set("expired", "true")
	}
	var page Page[contact.Entry]
	_, err := c.do(ctx, request{method: http.MethodGet, path: doNotContactPath, query: query}, &page)
	return page, err
}

// AddContacts adds entries, up to limit.MaxEntries at once, or none of them.
func (c *Client) AddContacts(ctx context.Context, entries ...contact.Entry) (contact.Counts, error) {
	return c.contacts(ctx, doNotContactPath, entries)
}

// RemoveContacts takes entries off the list, up to limit.MaxEntries at once.
func (c *Client) RemoveContacts(ctx context.Context, entries ...contact.Entry) (contact.Counts, error) {
	return c.contacts(ctx, doNotContactPath+"/remove", entries)
}

func (c *Client) contacts(ctx context.Context, path string, entries []contact.Entry) (contact.Counts, error) {
	in := struct {
		Entries []contact.Entry `json:"entries"`
	}{entries}
	var tally contact.Counts
	_, err := c.do(ctx, request{method: http.MethodPost, path: path, in: in}, &tally)
	return tally, err
}

// ExportContacts writes the whole list as CSV. If the answer was cut short,
// that is an error.
func (c *Client) ExportContacts(ctx context.Context, w io.Writer) error {
	answer, err := c.send(ctx, request{method: http.MethodGet, path: doNotContactPath + "/export"})
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(w, answer.Body); err != nil {
		return fmt.Errorf("export the list: %w", err)
	}
	if answer.Trailer.Get("Countersign-Complete") != "true" {
		return errors.New("the list was cut short; what came of it is not all")
	}
	return nil
}

// Employees lists what employees may do, the default entry first.
func (c *Client) Employees(ctx context.Context) ([]limits.Employee, error) {
	return listOf[limits.Employee](ctx, c, employeesPath)
}

// PutEmployee sets an employee's trust and scopes.
func (c *Client) PutEmployee(ctx context.Context, e limits.Employee) error {
	in := struct {
		Name   string       `json:"name,omitzero"`
		Trust  policy.Trust `json:"trust"`
		Scopes []string     `json:"scopes,omitempty"`
	}{e.Name, e.Trust, e.Scopes}
	return c.tell(ctx, http.MethodPut, employeesPath+"/"+limits.EmployeeText(e.ID), nil, in)
}

// DeleteEmployee removes an employee's entry.
func (c *Client) DeleteEmployee(ctx context.Context, id envelope.EmployeeID) error {
	return c.tell(ctx, http.MethodDelete, employeesPath+"/"+limits.EmployeeText(id), nil, nil)
}

// PauseFilter narrows a list of pauses; its zero fields do not.
type PauseFilter struct {
	// Standing leaves out what was lifted.
	Standing bool
	// Limit is how many a page holds; zero means 50.
	Limit int
	// Cursor is the NextCursor of the page before.
	Cursor string
}

// Pauses lists what is paused, and what was, the newest first.
func (c *Client) Pauses(ctx context.Context, f PauseFilter) (Page[pause.Pause], error) {
	query := given("cursor", f.Cursor)
	limited(query, f.Limit)
	if f.Standing {
		query.Set("standing", "true")
	}
	var page Page[pause.Pause]
	_, err := c.do(ctx, request{method: http.MethodGet, path: pausesPath, query: query}, &page)
	return page, err
}

// Pause pauses what a target names, or kills it, and returns what stands.
func (c *Client) Pause(ctx context.Context, of pause.Target, kill bool, reason string) (pause.Pause, error) {
	in := struct {
		pause.Target
		Kill   bool   `json:"kill"`
		Reason string `json:"reason"`
	}{of, kill, reason}
	var p pause.Pause
	_, err := c.do(ctx, request{method: http.MethodPost, path: pausesPath, in: in}, &p)
	return p, err
}

// Resume lifts a pause or a kill.
func (c *Client) Resume(ctx context.Context, of pause.Target, reason string) error {
	return c.tell(ctx, http.MethodDelete, pausesPath, given("scope", string(of.Scope), "subject", of.Subject, "reason", reason), nil)
}

// Breakers lists the sources that failed, and how the fleet stands to them.
func (c *Client) Breakers(ctx context.Context) ([]breaker.State, error) {
	return listOf[breaker.State](ctx, c, breakersPath)
}

// ResetBreaker lets calls to a source through at once.
func (c *Client) ResetBreaker(ctx context.Context, source string) error {
	return c.tell(ctx, http.MethodPost, breakersPath+"/"+url.PathEscape(source)+"/reset", nil, nil)
}

// Settings reads what holds for the whole tenant.
func (c *Client) Settings(ctx context.Context) (limits.Tenant, error) {
	var t limits.Tenant
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/settings"}, &t)
	return t, err
}

// PutSettings sets what holds for the whole tenant. What is left out goes back
// to what it is without a setting.
func (c *Client) PutSettings(ctx context.Context, t limits.Tenant) error {
	return c.tell(ctx, http.MethodPut, "/api/v1/settings", nil, t)
}

// Limits reads every limit as one document.
func (c *Client) Limits(ctx context.Context) (limits.Document, error) {
	var doc limits.Document
	_, err := c.do(ctx, request{method: http.MethodGet, path: limitsPath}, &doc)
	return doc, err
}

// PutLimits makes the limits what a document in JSON says, and returns what
// changed; with dry, what would.
func (c *Client) PutLimits(ctx context.Context, doc json.RawMessage, dry bool) ([]limits.Change, error) {
	return c.putDocument(ctx, limitsPath, doc, dry)
}

// PutToolRule says whom a tool writes to, what it takes to use it, and when it
// is tried again, instead of what was said before.
func (c *Client) PutToolRule(ctx context.Context, r limits.ToolRule) error {
	return c.tell(ctx, http.MethodPut, "/api/v1/tools/rules", nil, r)
}

// tell makes a request whose answer says only that it was done.
func (c *Client) tell(ctx context.Context, method, path string, query url.Values, in any) error {
	_, err := c.do(ctx, request{method: method, path: path, query: query, in: in}, nil)
	return err
}

// listOf reads a list that has no pages.
func listOf[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	var out Page[T]
	_, err := c.do(ctx, request{method: http.MethodGet, path: path}, &out)
	return out.Items, err
}
