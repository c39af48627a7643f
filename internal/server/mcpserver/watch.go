package mcpserver

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// recheckEvery is how often the tokens of open requests are looked at again.
const recheckEvery = 15 * time.Second

// watch looks after sessions until the Front closes: it tells of catalogs that
// changed, ends requests whose token is no longer valid, and takes away desks
// that nobody uses. Where nobody is connected it asks the database nothing.
func (f *Front) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	looks, rechecks := time.NewTicker(f.cfg.Poll), time.NewTicker(recheckEvery)
	defer looks.Stop()
	defer rechecks.Stop()
	f.watching.Go(func() { // ends a look that is under way
		<-f.closing
		cancel()
	})
	for {
		select {
		case <-f.closing:
			return
		case now := <-looks.C:
			f.tidy(now)
			f.compare(ctx)
		case <-rechecks.C:
			f.recheck(ctx)
		}
	}
}

// tidy takes away the desks that nobody uses.
func (f *Front) tidy(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.desks, func(_ identity.TokenID, d *desk) bool { return d.idle(now) })
}

// compare tells every client whose list of tools changed, asking once for each
// tenant that has clients.
func (f *Front) compare(ctx context.Context) {
	type standing struct {
		snap *settings.Settings
		now  time.Time
	}
	known := make(map[envelope.TenantID]standing)
	for _, d := range f.taken() {
		if len(slices.Collect(d.server.Sessions())) == 0 {
			continue
		}
		at := known[d.by.Tenant]
		var err error
		if at.snap == nil {
			at.snap, at.now, err = d.snapshot(ctx)
		}
		var moved bool
		if err == nil {
			known[d.by.Tenant] = at
			moved, err = d.moved(at.snap, at.now)
		}
		if err != nil && ctx.Err() == nil {
			f.cfg.Log.WarnContext(ctx, "catalog not compared", slog.String("tenant_id", d.by.Tenant.String()), slog.Any("error", err))
		}
		if moved {
			d.addFollowUps() // the SDK's server tells its clients when tools are added
		}
	}
}

// recheck ends open requests whose token was revoked, has expired, or says
// something else now.
func (f *Front) recheck(ctx context.Context) {
	f.mu.Lock()
	calls := slices.Collect(maps.Values(f.calls))
	f.mu.Unlock()
	for _, o := range calls {
		if by, err := f.auth.Authenticate(ctx, o.token, time.Now()); o.over(by, err) {
			o.cancel()
		}
	}
}
