package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
)

// The paths of the limits.
const (
	limitsPath       = "/api/v1/limits"
	settingsPath     = "/api/v1/settings"
	bucketsPath      = "/api/v1/buckets"
	quietHoursPath   = "/api/v1/quiet-hours"
	doNotContactPath = "/api/v1/do-not-contact"
	employeesPath    = "/api/v1/employees"
	pausesPath       = "/api/v1/pauses"
	breakersPath     = "/api/v1/breakers"
	retentionPath    = "/api/v1/retention"
)

// Buckets lists the buckets with their usage, also retired ones.
func (c *Client) Buckets(ctx context.Context) ([]wire.BucketState, error) {
	return list[wire.BucketState](ctx, c, bucketsPath, nil)
}

// Bucket reads a bucket with its usage.
func (c *Client) Bucket(ctx context.Context, name string) (wire.BucketState, error) {
	return read[wire.BucketState](ctx, c, bucketPath(name), nil)
}

// PutBucket makes a bucket, or replaces its limits.
func (c *Client) PutBucket(ctx context.Context, name string, b wire.Bucket) error {
	b.Name = ""
	return c.tell(ctx, http.MethodPut, bucketPath(name), nil, b)
}

// RetireBucket closes a bucket for new actions.
func (c *Client) RetireBucket(ctx context.Context, name string) error {
	return c.tell(ctx, http.MethodDelete, bucketPath(name), nil, nil)
}

// ReopenBucket ends the hold that a provider's answer put on a bucket.
func (c *Client) ReopenBucket(ctx context.Context, name string) error {
	return c.tell(ctx, http.MethodPost, bucketPath(name)+"/reopen", nil, nil)
}

func bucketPath(name string) string { return bucketsPath + "/" + url.PathEscape(name) }

// QuietHours lists the quiet hours.
func (c *Client) QuietHours(ctx context.Context) ([]wire.QuietHours, error) {
	return list[wire.QuietHours](ctx, c, quietHoursPath, nil)
}

// PreviewQuietHours returns the effect of quiet hours over two weeks from a
// time, or from now if that is zero. It changes nothing.
func (c *Client) PreviewQuietHours(ctx context.Context, h wire.QuietHours, from time.Time) (wire.QuietPreview, error) {
	in := wire.QuietHours{Timezone: h.Timezone, Windows: h.Windows, Spread: h.Spread}
	var out wire.QuietPreview
	_, err := c.do(ctx, request{method: http.MethodPost, path: quietHoursPath + "/preview", query: given("scope", h.Scope, "subject", h.Subject, "from", moment(from)), in: in}, &out)
	return out, err
}

// PutQuietHours replaces the quiet hours of a scope and subject.
func (c *Client) PutQuietHours(ctx context.Context, h wire.QuietHours) error {
	in := wire.QuietHours{Timezone: h.Timezone, Windows: h.Windows, Spread: h.Spread}
	return c.tell(ctx, http.MethodPut, quietHoursPath+"/"+url.PathEscape(h.Scope), given("subject", h.Subject), in)
}

// DeleteQuietHours removes quiet hours.
func (c *Client) DeleteQuietHours(ctx context.Context, scope, subject string) error {
	return c.tell(ctx, http.MethodDelete, quietHoursPath+"/"+url.PathEscape(scope), given("subject", subject), nil)
}

// ContactFilter narrows the do-not-contact list; its zero fields do not.
type ContactFilter struct {
	Kind, Prefix string
	// Expired includes entries that no longer count.
	Expired bool
	// Limit is the size of a page; zero means 50.
	Limit int
	// Cursor is the NextCursor of the page before.
	Cursor string
}

// Contacts lists do-not-contact entries in order of kind and value.
func (c *Client) Contacts(ctx context.Context, f ContactFilter) (wire.Page[wire.Contact], error) {
	return read[wire.Page[wire.Contact]](ctx, c, doNotContactPath, given(
		"kind", f.Kind, "prefix", f.Prefix, "expired", flag(f.Expired), "limit", number(f.Limit), "cursor", f.Cursor))
}

// AddContacts adds up to 1000 entries, all or none.
func (c *Client) AddContacts(ctx context.Context, entries ...wire.Contact) (wire.ContactCount, error) {
	return post[wire.ContactCount](ctx, c, doNotContactPath, wire.Contacts{Entries: entries})
}

// CheckContact looks up a recipient in the do-not-contact list, in any form in
// which an action may have it.
func (c *Client) CheckContact(ctx context.Context, value string) (wire.ContactCheck, error) {
	return post[wire.ContactCheck](ctx, c, doNotContactPath+"/check", wire.ContactText{Value: value})
}

// RemoveContacts removes entries, up to 1000. The note is the reason, for the
// audit log; it may be empty.
func (c *Client) RemoveContacts(ctx context.Context, note string, entries ...wire.Contact) (wire.ContactCount, error) {
	return post[wire.ContactCount](ctx, c, doNotContactPath+"/remove", wire.Contacts{Entries: entries, Note: note})
}

// ExportContacts writes the whole list as CSV. An answer that was cut short is
// an error.
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
		return errors.New("the list was cut short; the written part is incomplete")
	}
	return nil
}

// Employees lists the employees, the default entry first.
func (c *Client) Employees(ctx context.Context) ([]wire.Employee, error) {
	return list[wire.Employee](ctx, c, employeesPath, nil)
}

// PutEmployee replaces an employee's trust and scopes; the id default is for
// all without an entry.
func (c *Client) PutEmployee(ctx context.Context, id string, e wire.Employee) error {
	e.ID, e.ETag = "", ""
	return c.tell(ctx, http.MethodPut, employeesPath+"/"+url.PathEscape(id), nil, e)
}

// DeleteEmployee removes an employee's entry.
func (c *Client) DeleteEmployee(ctx context.Context, id string) error {
	return c.tell(ctx, http.MethodDelete, employeesPath+"/"+url.PathEscape(id), nil, nil)
}

// PauseFilter narrows a list of pauses; its zero fields do not.
type PauseFilter struct {
	// Active leaves out lifted pauses.
	Active bool
	// Limit is the size of a page; zero means 50.
	Limit int
	// Cursor is the NextCursor of the page before.
	Cursor string
}

// Pauses lists present and past pauses, newest first.
func (c *Client) Pauses(ctx context.Context, f PauseFilter) (wire.Page[wire.Pause], error) {
	return read[wire.Page[wire.Pause]](ctx, c, pausesPath, given("active", flag(f.Active), "limit", number(f.Limit), "cursor", f.Cursor))
}

// ForecastPause counts the actions that a pause of a target would hold, and a kill
// would end.
func (c *Client) ForecastPause(ctx context.Context, of wire.Target) (wire.PauseForecast, error) {
	return read[wire.PauseForecast](ctx, c, pausesPath+"/forecast", given("scope", string(of.Scope), "subject", of.Subject))
}

// Pause pauses or kills a target.
func (c *Client) Pause(ctx context.Context, in wire.PauseInput) (wire.Pause, error) {
	return post[wire.Pause](ctx, c, pausesPath, in)
}

// Resume lifts the pause or the kill of a target.
func (c *Client) Resume(ctx context.Context, of wire.Target, reason string) error {
	active := Items(func(cursor string) (wire.Page[wire.Pause], error) {
		return c.Pauses(ctx, PauseFilter{Active: true, Limit: maxPage, Cursor: cursor})
	})
	for p, err := range active {
		if err != nil {
			return err
		}
		if p.Scope == of.Scope && strings.EqualFold(p.Subject, of.Subject) {
			return c.tell(ctx, http.MethodDelete, pausesPath+"/"+p.ID.String(), given("reason", reason), nil)
		}
	}
	return &Problem{Problem: wire.Problem{
		Type: "urn:countersign:problem:not_found", Status: http.StatusNotFound, Title: "Not found",
		Detail: "nothing is paused there; list the pauses to see the active ones",
	}}
}

// Breakers lists the sources that failed, with the state of their breakers.
func (c *Client) Breakers(ctx context.Context) ([]wire.Breaker, error) {
	return list[wire.Breaker](ctx, c, breakersPath, nil)
}

// ResetBreaker closes the breaker of a source.
func (c *Client) ResetBreaker(ctx context.Context, source string) error {
	return c.tell(ctx, http.MethodPost, breakersPath+"/"+url.PathEscape(source)+"/reset", nil, nil)
}

// Settings reads the settings of the tenant, with their ETag.
func (c *Client) Settings(ctx context.Context) (wire.Settings, error) {
	var s wire.Settings
	answer, err := c.do(ctx, request{method: http.MethodGet, path: settingsPath}, &s)
	if err == nil {
		s.ETag = etag(answer)
	}
	return s, err
}

// PutSettings replaces the settings of the tenant. Omitted fields return to
// their defaults. If the settings were changed since the ETag was read, the
// error is ErrStale.
func (c *Client) PutSettings(ctx context.Context, s wire.Settings) error {
	_, err := c.do(ctx, request{method: http.MethodPut, path: settingsPath, header: ifMatch(s.ETag), in: s}, nil)
	return err
}

// Retention lists the retention of each kind of data.
func (c *Client) Retention(ctx context.Context) ([]wire.Retention, error) {
	return list[wire.Retention](ctx, c, retentionPath, nil)
}

// PutRetention sets the retention of a kind of data.
func (c *Client) PutRetention(ctx context.Context, r wire.Retention) error {
	in := wire.Retention{Period: r.Period, Action: r.Action, Note: r.Note}
	return c.tell(ctx, http.MethodPut, retentionPath+"/"+url.PathEscape(r.Kind), nil, in)
}

// Overview reads the state of the tenant.
func (c *Client) Overview(ctx context.Context) (wire.Overview, error) {
	return read[wire.Overview](ctx, c, "/api/v1/overview", nil)
}

// Workers lists the worker processes of the fleet.
func (c *Client) Workers(ctx context.Context) ([]wire.Worker, error) {
	page, err := read[wire.Page[wire.Worker]](ctx, c, "/api/v1/workers", nil)
	return page.Items, err
}

// ActivityRange is a range of the backlog and the throughput over time. Its zero
// fields are the last hour in steps of a minute.
type ActivityRange struct {
	Since, Until time.Time
	Step         wire.ActivityStep
}

// Activity reads the backlog and the throughput of the tenant over time.
func (c *Client) Activity(ctx context.Context, r ActivityRange) (wire.Activity, error) {
	return read[wire.Activity](ctx, c, "/api/v1/activity", given("since", moment(r.Since), "until", moment(r.Until), "step", string(r.Step)))
}
