// Package calendar reads the calendars that briefs of mail accounts name, with the
// credentials of their sources, and stores the events of the coming days for the
// processes that make briefs. It changes no calendar, and text of calendars is in no log.
package calendar

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/dav"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// every is the time between two readings of a calendar, days the days that are read,
	// and timeout bounds a reading.
	every   = 10 * time.Minute
	days    = 8
	timeout = 30 * time.Second
	// most bounds the calendars of a round, and atOnce those that are read together.
	most   = 200
	atOnce = 8
)

// Reader reads calendars.
type Reader struct {
	db    postgres.Begins
	cache *settings.Cache
	live  *connection.Pool
	log   *slog.Logger
}

// New returns a Reader that reads through the connections of a pool.
func New(db postgres.Begins, cache *settings.Cache, live *connection.Pool, log *slog.Logger) *Reader {
	return &Reader{db, cache, live, log}
}

// due is a calendar to read.
type due struct {
	tenant       envelope.TenantID
	account      uuid.UUID
	source, zone string
}

// Read reads the calendars that are due, each by one process. A calendar that cannot be
// read keeps its events, with the reason, and does not affect the others.
func (r *Reader) Read(ctx context.Context, now time.Time) error {
	claimed, err := postgres.InTxReturning(ctx, r.db, postgres.Worker(), func(tx pgx.Tx) ([]due, error) { return claim(ctx, tx, now.Add(-every)) })
	if err != nil {
		return err
	}
	var g errgroup.Group
	g.SetLimit(atOnce)
	for _, d := range claimed {
		g.Go(func() error {
			events, problem, err := r.read(ctx, d, now)
			if err != nil {
				return err
			}
			if problem != "" {
				r.log.WarnContext(ctx, "calendar was not read", slog.String("tenant_id", d.tenant.String()), slog.String("source_id", d.source), slog.String("problem", problem))
			}
			return postgres.InTx(ctx, r.db, postgres.Worker(), func(tx pgx.Tx) error { return put(ctx, tx, d, events, problem) })
		})
	}
	return g.Wait()
}

// read returns the events of a calendar, or the reason why it was not read.
func (r *Reader) read(ctx context.Context, d due, now time.Time) (events json.RawMessage, problem string, err error) {
	current, err := postgres.InTxReturning(ctx, r.db, postgres.Worker(), func(tx pgx.Tx) (*settings.Settings, error) { return r.cache.Current(ctx, tx, d.tenant) })
	if err != nil {
		return nil, "", err
	}
	of, ok := current.Source(d.source)
	if !ok || !of.Enabled || of.Kind != catalog.KindDAV {
		return nil, "no enabled source of kind dav has this name", nil
	}
	zone, err := time.LoadLocation(d.zone)
	if err != nil {
		return nil, "unknown zone", nil
	}
	src, err := r.live.Get(current, d.source)
	if err != nil {
		return nil, "the source cannot be opened", nil // the error may have text of its configuration
	}
	y, m, day := now.In(zone).Date()
	args, err := json.Marshal(map[string]string{
		"from":  time.Date(y, m, day, 0, 0, 0, 0, zone).Format(time.RFC3339),
		"until": time.Date(y, m, day+days, 0, 0, 0, 0, zone).Format(time.RFC3339),
		"zone":  d.zone,
	})
	if err != nil {
		return nil, "", err
	}
	out := src.Execute(ctx, source.Call{Key: "calendar:" + d.account.String(), Tool: dav.ToolEvents, Args: args, Effect: envelope.EffectRead, Attempt: 1, Timeout: timeout})
	if out.Kind != source.KindDone {
		return nil, fmt.Sprintf("the server does not return it (%s)", out.Code), nil
	}
	return out.Result, "", nil
}
