package brief

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// calendarAge is the age at which the events of a calendar are too old for a brief.
const calendarAge = time.Hour

// readCalendar returns the events of the day of a brief, as a worker last read them, or
// why there are none.
func readCalendar(ctx context.Context, tx pgx.Tx, about About) (*wire.TriageBriefCalendar, error) {
	name, zone := about.Settings.Calendar, Location(about.Settings.Zone)
	if name == "" {
		return nil, nil
	}
	c := &wire.TriageBriefCalendar{Source: name, Events: of[wire.TriageBriefEvent](nil)}
	r, err := dbsqlc.New().TriageCalendarGet(ctx, tx, &dbsqlc.TriageCalendarGetParams{TenantID: about.Tenant, AccountID: about.Account, SourceID: name, Zone: about.Settings.Zone})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	if r.ReadAt == nil || about.Until.Sub(*r.ReadAt) > calendarAge {
		c.Problem = "it was not read yet"
		switch {
		case r.Problem != "":
			c.Problem = r.Problem
		case r.ReadAt != nil:
			c.Problem = "it was last read on " + r.ReadAt.In(zone).Format("2 January at "+clock)
		}
		return c, nil
	}
	var stored struct {
		Events []wire.TriageBriefEvent
		Unread int
	}
	if err := json.Unmarshal(r.Events, &stored); err != nil {
		return nil, fmt.Errorf("events of the calendar %s: %w", name, err)
	}
	from := day(about.Until, zone)
	until := from.AddDate(0, 0, 1)
	var all []wire.TriageBriefEvent
	for _, e := range stored.Events {
		if e.Start.Before(until) && (e.End.After(from) || e.End.Equal(e.Start) && !e.Start.Before(from)) {
			all = append(all, e)
		}
	}
	c.Events, c.Unread = of(all), stored.Unread
	return c, nil
}
