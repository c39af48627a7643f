package brief

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/followup"
)

const (
	// meetingAge is the age of the oldest mail that counts for a meeting, maxThreads
	// bounds its threads.
	meetingAge = 365 * 24 * time.Hour
	maxThreads = 5
)

// Meeting prepares for the meeting in the calendar of an account that begins at a time,
// or for the next one with other people if that is zero. Addresses count as the same
// person only if they are equal but for case.
func Meeting(ctx context.Context, tx pgx.Tx, about About, at time.Time) (wire.TriageMeeting, error) {
	m := wire.TriageMeeting{Account: about.Name, Zone: about.Settings.Zone, ShowsMail: about.ShowMail}
	if about.Settings.Calendar == "" {
		return m, fault.New(fault.NotFound, "the account has no calendar: set one with triage brief schedule --calendar")
	}
	events, _, problem, err := readEvents(ctx, tx, about)
	if err != nil {
		return m, err
	}
	if problem != "" {
		return m, fault.New(fault.NotFound, "the calendar %s is missing: %s", about.Settings.Calendar, problem)
	}
	e, ok := chosen(events, about, at)
	if !ok {
		return m, fault.New(fault.NotFound, "the calendar %s has no such meeting in the coming days", about.Settings.Calendar)
	}
	people := others(e.People, about.Own)
	m.Event, m.People.Total = e.TriageBriefEvent, len(people)
	if m.People.Items, err = readPeople(ctx, tx, about, people[:min(len(people), maxItems)]); err != nil {
		return m, err
	}
	if m.Threads, err = readThreads(ctx, tx, about, people); err != nil {
		return m, err
	}
	if m.Owed, m.Awaited, err = readOwed(ctx, tx, about, people); err != nil {
		return m, err
	}
	if !about.ShowMail {
		m.Event.Summary, m.Event.Location = "", ""
		m.People.Items, m.Threads.Items = []wire.TriageMeetingPerson{}, []wire.TriageMeetingThread{}
		withoutNames(m.Owed.Items)
		withoutNames(m.Awaited.Items)
	}
	return m, nil
}

// chosen returns the event that begins at a time, preferring one with other people, or
// the first one with other people that is not over.
func chosen(events []event, about About, at time.Time) (found event, ok bool) {
	for _, e := range events {
		with := len(others(e.People, about.Own)) > 0
		switch {
		case at.IsZero() && with && e.End.After(about.Until) && (!ok || e.Start.Before(found.Start)):
			found, ok = e, true
		case !at.IsZero() && e.Start.Equal(at) && (!ok || with && len(others(found.People, about.Own)) == 0):
			found, ok = e, true
		}
	}
	return found, ok
}

// others returns the addresses of people in lower case, once each, without the owner's.
func others(people, own []string) (all []string) {
	for _, p := range people {
		if p = strings.ToLower(p); !slices.Contains(all, p) && !slices.ContainsFunc(own, func(o string) bool { return strings.EqualFold(o, p) }) {
			all = append(all, p)
		}
	}
	return all
}

func readPeople(ctx context.Context, tx pgx.Tx, about About, people []string) ([]wire.TriageMeetingPerson, error) {
	all := []wire.TriageMeetingPerson{}
	rows, err := dbsqlc.New().TriageMeetingPeople(ctx, tx, &dbsqlc.TriageMeetingPeopleParams{
		TenantID: about.Tenant, AccountID: about.Account, Since: about.Until.Add(-meetingAge), Until: about.Until, People: people,
	})
	for _, p := range people {
		person := wire.TriageMeetingPerson{Address: p}
		for _, r := range rows {
			if r.Address == p {
				person.Theirs, person.Mine, person.Last = int(r.Theirs), int(r.Mine), postgres.UTC(&r.Last)
			}
		}
		all = append(all, person)
	}
	return all, err
}

func readThreads(ctx context.Context, tx pgx.Tx, about About, people []string) (wire.TriageBriefList[wire.TriageMeetingThread], error) {
	list := of[wire.TriageMeetingThread](nil)
	rows, err := dbsqlc.New().TriageMeetingThreads(ctx, tx, &dbsqlc.TriageMeetingThreadsParams{
		TenantID: about.Tenant, AccountID: about.Account, Since: about.Until.Add(-meetingAge), Until: about.Until, People: people, Most: maxThreads,
	})
	for _, r := range rows {
		list.Total = int(r.Threads)
		list.Items = append(list.Items, wire.TriageMeetingThread{
			ThreadID: r.ThreadID, MessageID: r.MessageID, Outgoing: r.Outgoing, Sender: r.Sender, SenderName: r.SenderName, Subject: r.Subject, ReceivedAt: r.ReceivedAt.UTC(),
		})
	}
	return list, err
}

// readOwed returns the follow-ups of the owner and of others in mail with people.
func readOwed(ctx context.Context, tx pgx.Tx, about About, people []string) (owed, awaited wire.TriageBriefFollowUps, err error) {
	all, err := followups(ctx, tx, about)
	all = slices.DeleteFunc(all, func(f wire.TriageFollowUp) bool { return !slices.Contains(people, strings.ToLower(f.With)) })
	return side(all, followup.Me, about.Until), side(all, followup.Them, about.Until), err
}
