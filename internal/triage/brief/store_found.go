package brief

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/extract"
)

// readFound reads the receipts, meetings, tasks and journeys in the mail of the time,
// and those up to the end of the next day.
func readFound(ctx context.Context, tx pgx.Tx, about About) (wire.TriageBriefFound, error) {
	zone := Location(about.Settings.Zone)
	found := wire.TriageBriefFound{Kinds: []wire.TriageBriefCount{}}
	rows, err := dbsqlc.New().TriageBriefFound(ctx, tx, &dbsqlc.TriageBriefFoundParams{
		TenantID: about.Tenant, AccountID: about.Account, Since: about.Since, Until: about.Until, Earliest: about.Until.Add(-24 * time.Hour),
		Horizon: day(about.Until, zone).AddDate(0, 0, 2), Most: maxItems,
	})
	if err != nil {
		return found, err
	}
	var all []wire.TriageBriefItem
	for _, r := range rows {
		if last := len(found.Kinds) - 1; last < 0 || found.Kinds[last].Name != r.Kind {
			found.Kinds = append(found.Kinds, wire.TriageBriefCount{Name: r.Kind, Count: int(r.Total)})
			found.Total += int(r.Total)
		}
		var fields []extract.Field
		if err := json.Unmarshal(r.Fields, &fields); err != nil {
			return found, err
		}
		it := wire.TriageBriefItem{Kind: r.Kind, Text: textOf(extract.Kind(r.Kind), fields, r), At: postgres.UTC(r.StartsAt), MessageID: r.MessageID}
		if at, ok := wholeDay(extract.Kind(r.Kind), fields, zone); ok {
			it.At, it.WholeDay = new(at.UTC()), true
		}
		all = append(all, it)
	}
	slices.SortStableFunc(all, func(a, b wire.TriageBriefItem) int {
		if a.At == nil || b.At == nil {
			return cmp.Compare(a.Kind, b.Kind)
		}
		return a.At.Compare(*b.At)
	})
	found.Items = of(all).Items
	return found, nil
}

// day returns the beginning of the day of a time.
func day(t time.Time, zone *time.Location) time.Time {
	y, m, d := t.In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, zone)
}

// valueOf returns the first of some fields that has a value.
func valueOf(fields []extract.Field, names ...string) string {
	for _, name := range names {
		for _, f := range fields {
			if f.Name == name && f.Value != "" {
				return f.Value
			}
		}
	}
	return ""
}

// wholeDay returns the day of a finding that has no time of day, in the owner's zone.
func wholeDay(k extract.Kind, fields []extract.Field, zone *time.Location) (time.Time, bool) {
	names := map[extract.Kind][]string{extract.Receipt: {"date"}, extract.Meeting: {"start"}, extract.Task: {"due"}, extract.Travel: {"departure"}}[k]
	if valueOf(fields, "mode") == "hotel" {
		names = []string{"arrival"}
	}
	at, err := time.ParseInLocation(time.DateOnly, valueOf(fields, names...), zone)
	return at, err == nil
}

// textOf returns a line about a finding. It has no sentence of the mail: a task in the
// text is named by the sender and the subject.
func textOf(k extract.Kind, fields []extract.Field, r dbsqlc.TriageBriefFoundRow) string {
	mail := person(r.SenderName, r.Sender) + ": " + cmp.Or(r.Subject, "(no subject)")
	switch k {
	case extract.Receipt:
		return cmp.Or(valueOf(fields, "merchant"), person(r.SenderName, r.Sender)) + ", " + strings.TrimSpace(valueOf(fields, "amount")+" "+valueOf(fields, "currency"))
	case extract.Meeting, extract.Task:
		text := mail
		for _, f := range fields {
			if f.Name == "summary" && f.Value != "" && f.Part != extract.Body && f.Part != extract.Text {
				text = f.Value
			}
		}
		if place := valueOf(fields, "location"); place != "" {
			text += " (" + place + ")"
		}
		return text
	case extract.Travel:
		text := strings.TrimSpace(valueOf(fields, "mode") + " " + valueOf(fields, "number"))
		if from := valueOf(fields, "from"); from != "" {
			text += " from " + from
		}
		if to := valueOf(fields, "to"); to != "" {
			text += map[bool]string{true: ", ", false: " to "}[valueOf(fields, "mode") == "hotel"] + to
		}
		return text
	case extract.Code, extract.Contact:
	}
	return mail
}
