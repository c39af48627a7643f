package limits

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// quietHours are quiet hours with their entity tag.
type quietHours struct {
	limits.QuietHours
	ETag string `json:"etag"`
}

// allQuietHours is the collection of quiet hours, by scope and subject.
var allQuietHours = request.Collection[quietHours]{
	Name: "quiet-hours", Noun: "quiet hours",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]quietHours, error) {
		all, err := limits.QuietHoursList(ctx, tx, c.By.Tenant)
		return request.Map(all, func(h limits.QuietHours) quietHours { return quietHours{QuietHours: h} }), err
	},
	Key:  func(h quietHours) string { return quietKey(h.Scope, h.Subject) },
	ETag: func(h *quietHours) *string { return &h.ETag },
}

func quietKey(scope limits.QuietScope, subject string) string { return string(scope) + " " + subject }

// quietInPath sets the scope and the subject of quiet hours from the path and
// the query, and returns their key, which has the subject in normal form.
func quietInPath(c *request.Call, h *limits.QuietHours) (string, error) {
	h.Scope, h.Subject = limits.QuietScope(c.R.PathValue("scope")), c.Query.Get("subject")
	tenant, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (limits.Tenant, error) {
		return limits.TenantOf(ctx, tx, c.By.Tenant)
	})
	stored := h.Stored(tenant)
	return quietKey(stored.Scope, stored.Subject), err
}

// QuietHours handles GET /api/v1/quiet-hours. It lists the quiet hours.
func QuietHours(c *request.Call) error { return allQuietHours.List(c) }

// PreviewQuietHours handles POST /api/v1/quiet-hours/preview. It returns the
// effect of quiet hours over two weeks. It stores nothing.
func PreviewQuietHours(c *request.Call, h limits.QuietHours) error {
	h.Scope, h.Subject = limits.QuietScope(c.Query.Get("scope")), c.Query.Get("subject")
	from, err := c.QueryTime("from")
	if err != nil {
		return err
	}
	if !c.Query.Has("from") {
		from = time.Now()
	}
	if from.Year() < 1970 || from.Year() > 2999 {
		return request.Invalid("/query/from", envelope.RuleFormat, "must be between the years 1970 and 2999")
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.QuietPreview, error) {
		return limits.PreviewQuietHours(ctx, tx, c.By.Tenant, h, from)
	})
}

// PutQuietHours handles PUT /api/v1/quiet-hours/{scope}. It sets quiet hours.
func PutQuietHours(c *request.Call, h limits.QuietHours) error {
	key, err := quietInPath(c, &h)
	if err == nil {
		err = c.CheckTools("*")
	}
	if err != nil {
		return err
	}
	return allQuietHours.Put(c, key, "", func(ctx context.Context, tx pgx.Tx) error {
		return limits.PutQuietHours(ctx, tx, c.By.Tenant, h, c.By.Actor())
	})
}

// DeleteQuietHours handles DELETE /api/v1/quiet-hours/{scope}. It deletes quiet
// hours.
func DeleteQuietHours(c *request.Call) error {
	var h limits.QuietHours
	key, err := quietInPath(c, &h)
	if err != nil {
		return err
	}
	return allQuietHours.Delete(c, key, "", func(ctx context.Context, tx pgx.Tx) error {
		return limits.DeleteQuietHours(ctx, tx, c.By.Tenant, h.Scope, h.Subject, c.By.Actor())
	})
}
