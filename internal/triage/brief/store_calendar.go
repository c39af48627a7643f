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

// event is an event as a worker stores it.
type event struct {
	wire.TriageBriefEvent
	People []string
}

// readCalendar returns the events of the day of a brief, as a worker last read them, or
// why there are none.
func readCalendar(ctx context.Context, tx pgx.Tx, about About) (*wire.TriageBriefCalendar, error) {
	if about.Settings.Calendar == "" {
		return nil, nil
	}
	c := &wire.TriageBriefCalendar{Source: about.Settings.Calendar, Events: of[wire.TriageBriefEvent](nil)}
	events, unread, problem, err := readEvents(ctx, tx, about)
	if c.Problem = problem; err != nil || problem != "" {
		return c, err
	}
	from := day(about.Until, Location(about.Settings.Zone))
	until := from.AddDate(0, 0, 1)
	var all []wire.TriageBriefEvent
	for _, e := range events {
		if e.Start.Before(until) && (e.End.After(from) || e.End.Equal(e.Start) && !e.Start.Before(from)) {
			all = append(all, e.TriageBriefEvent)
		}
	}
	c.Events, c.Unread = of(all), unread
	return c, nil
}

// readEvents returns the stored events of the calendar of an account and the number of
// those that cannot be read, or the reason for none.
func readEvents(ctx context.Context, tx pgx.Tx, about About) (events []event, unread int, problem string, err error) {
	name, zone := about.Settings.Calendar, Location(about.Settings.Zone)
	r, err := dbsqlc.New().TriageCalendarGet(ctx, tx, &dbsqlc.TriageCalendarGetParams{TenantID: about.Tenant, AccountID: about.Account, SourceID: name, Zone: about.Settings.Zone})
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return nil, 0, "", err
	case r.ReadAt != nil && about.Until.Sub(*r.ReadAt) <= calendarAge:
	case r.Problem != "":
		return nil, 0, r.Problem, nil
	case r.ReadAt != nil:
		return nil, 0, "it was last read on " + r.ReadAt.In(zone).Format("2 January at "+clock), nil
	default:
		return nil, 0, "it was not read yet", nil
	}
	var stored struct {
		Events []event
		Unread int
	}
	if err := json.Unmarshal(r.Events, &stored); err != nil {
		return nil, 0, "", fmt.Errorf("events of the calendar %s: %w", name, err)
	}
	return stored.Events, stored.Unread, "", nil
}
