package brief_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/brief"
)

func (f *fixture) meeting(settings brief.Settings, at time.Time) (m wire.TriageMeeting, err error) {
	f.t.Helper()
	err = postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) error {
		about, err := brief.Of(f.t.Context(), tx, f.tenant, f.account, &settings, f.now, f.now)
		if err != nil {
			return err
		}
		about.Name, about.Own = "work", []string{"Ann@example.org"}
		m, err = brief.Meeting(f.t.Context(), tx, about, at)
		return err
	})
	return m, err
}

// calendar stores a calendar that a worker has read just now.
func (f *fixture) calendar(events string) {
	f.t.Helper()
	f.exec(`INSERT INTO triage_calendars (tenant_id, account_id, source_id, zone, tried_at, read_at, events) VALUES ($1, $2, 'home', 'UTC', $3, $3, $4)`, f.account, f.now, `{"events":[`+events+`]}`)
}

// TestMeeting prepares for the next meeting and for a named one.
func TestMeeting(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	settings := brief.Settings{Zone: "UTC", Calendar: "home", ShowMail: true}
	for range 7 {
		f.message(uuid.New(), 2*time.Hour, "request", "actionable", "SECRET sign", "SECRETBODY by 30 November")
	}
	thread := uuid.New()
	f.message(thread, 2*time.Hour, "fyi", "informational", "SECRET older", "SECRETBODY")
	f.message(thread, time.Hour, "", "", "SECRET newest", "SECRETBODY")
	look := f.message(uuid.New(), time.Minute, "request", "actionable", "LOOKALIKE", "SECRETBODY")
	f.exec("UPDATE triage_messages SET sender = 'tom@examp1e.org', sender_name = 'tom@example.org' WHERE tenant_id = $1 AND message_id = $2", look)
	f.message(uuid.New(), 400*24*time.Hour, "fyi", "informational", "TOO OLD", "SECRETBODY")

	if _, err := f.meeting(brief.Settings{Zone: "UTC"}, time.Time{}); !errors.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "no calendar") {
		t.Errorf("without a calendar: %v", err)
	}
	if _, err := f.meeting(settings, time.Time{}); !errors.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "not read yet") {
		t.Errorf("before the first reading: %v", err)
	}
	many := make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprintf("p%d@example.net", i)
	}
	crowd, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	f.calendar(`{"start":"2026-11-27T07:00:00Z","end":"2026-11-27T07:30:00Z","summary":"OVER","people":["tom@example.org"]},
		{"start":"2026-11-27T08:30:00Z","end":"2026-11-27T09:00:00Z","summary":"ALONE","people":["ann@EXAMPLE.org"]},
		{"start":"2026-11-27T10:00:00Z","end":"2026-11-27T11:00:00Z","summary":"SECRET Review","people":["ANN@example.org","Tom@Example.org","tom@example.org","new'@example.org"]},
		{"start":"2026-11-28T10:00:00Z","end":"2026-11-28T11:00:00Z","summary":"Crowd","people":` + string(crowd) + `}`)

	m, err := f.meeting(settings, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Event.Summary != "SECRET Review" || m.People.Total != 2 || m.Threads.Total != 8 || len(m.Threads.Items) != 5 || m.Threads.Items[0].Subject != "SECRET newest" || m.Owed.Total != 7 {
		t.Errorf("the meeting is %+v", m)
	}
	if tom, unknown := m.People.Items[0], m.People.Items[1]; tom.Address != "tom@example.org" || tom.Theirs != 8 || tom.Mine != 1 || !tom.Last.Equal(f.now.Add(-time.Hour)) || unknown != (wire.TriageMeetingPerson{Address: "new'@example.org"}) {
		t.Errorf("the people are %+v", m.People.Items)
	}
	if data, _ := json.Marshal(m); strings.Contains(string(data), "SECRETBODY") || strings.Contains(string(data), "LOOKALIKE") {
		t.Errorf("a body, or mail of another address: %s", data)
	}
	settings.ShowMail = false
	m, err = f.meeting(settings, time.Time{})
	if data, _ := json.Marshal(m); err != nil || strings.Contains(string(data), "SECRET") || strings.Contains(string(data), "@") || m.People.Total != 2 || m.Threads.Total != 8 || m.Owed.Total != 7 {
		t.Errorf("without mail: %s, %v", data, err)
	}
	settings.ShowMail = true
	if m, err = f.meeting(settings, time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)); err != nil || m.People.Total != 200 || len(m.People.Items) != 10 || m.Threads.Total != 0 {
		t.Errorf("a crowd: %d of %d, %v", len(m.People.Items), m.People.Total, err)
	}
	if m, err = f.meeting(settings, time.Date(2026, 11, 27, 8, 30, 0, 0, time.UTC)); err != nil || m.Event.Summary != "ALONE" || m.People.Total != 0 || m.Owed.Total != 0 {
		t.Errorf("without people: %+v, %v", m, err)
	}
	if _, err = f.meeting(settings, f.now); !errors.Is(err, fault.NotFound) {
		t.Errorf("an unknown event: %v", err)
	}
}

// TestMeetingText compares the text of two preparations with the wanted ones: with mail, whose
// control characters do not show, and without.
func TestMeetingText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	m := wire.TriageMeeting{
		Account: "work", Zone: "Europe/Berlin", ShowsMail: true,
		Event: wire.TriageBriefEvent{Start: at, End: at.Add(time.Hour), Summary: "Review\x1b[2J"},
		People: wire.TriageBriefList[wire.TriageMeetingPerson]{Total: 12, Items: []wire.TriageMeetingPerson{
			{Address: "tom@example.org", Theirs: 8, Mine: 1, Last: &at}, {Address: "new@example.org"},
		}},
		Threads: wire.TriageBriefList[wire.TriageMeetingThread]{Total: 2, Items: []wire.TriageMeetingThread{
			{Sender: "tom@example.org", SenderName: "Tom", Subject: "The offer", ReceivedAt: at}, {Outgoing: true, ReceivedAt: at},
		}},
		Owed: wire.TriageBriefFollowUps{Total: 1, Items: []wire.TriageFollowUp{
			{With: "tom@example.org", WithName: "Tom", Subject: "The offer", Since: at},
		}},
	}
	const want = `Review\u{001B}[2J, Friday 27 November at 11:00 (Europe/Berlin)

People: 12
  tom@example.org  8 from them, 1 from you, last on 27 November 2026
  new@example.org  no mail
  and 10 more

Threads with them: 2
  27 November  Tom: The offer
  27 November  you: (no subject)

You owe them
  since 27 Nov  Tom: The offer
`
	if diff := cmp.Diff(want, brief.MeetingText(m)); diff != "" {
		t.Errorf("with mail (-want +got):\n%s", diff)
	}

	m.ShowsMail, m.Event.Summary, m.People.Items, m.Threads.Items, m.Owed.Items = false, "", nil, nil, nil
	const numbers = `A meeting, Friday 27 November at 11:00 (Europe/Berlin)

People: 12

Threads with them: 2

You owe them: 1
  1 answer waits.
`
	if diff := cmp.Diff(numbers, brief.MeetingText(m)); diff != "" {
		t.Errorf("without mail (-want +got):\n%s", diff)
	}
}
