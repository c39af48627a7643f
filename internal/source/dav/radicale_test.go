package dav_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/dav"
	"github.com/countersign-dev/countersign/internal/source/davtest"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// radicale is a source of the collections of a Radicale.
type radicale struct {
	*testing.T
	server *davtest.Server
	source source.Source
}

func newRadicale(t *testing.T) radicale {
	t.Helper()
	server := davtest.New(t)
	return radicale{t, server, open(t, dav.Config{
		Calendars: map[string]string{"default": server.Calendar}, AddressBooks: map[string]string{"family": server.AddressBook},
		User: davtest.User, Password: rest.NewSecret(davtest.Password),
	})}
}

// call makes a call and compares its outcome.
func (r radicale) call(key, tool, args string, kind source.Kind, code string) json.RawMessage {
	r.Helper()
	got := r.source.Execute(r.Context(), source.Call{Key: key, Tool: tool, Args: json.RawMessage(args), Effect: envelope.EffectKeyed, Attempt: 1})
	if got.Kind != kind || got.Code != code {
		r.Fatalf("Execute(%s %s) = %s %q (%s), want %s %q", tool, args, got.Kind, got.Code, got.Message, kind, code)
	}
	return got.Result
}

// contains compares the lines of an item. Its lines are unfolded.
func (r radicale) contains(text string, lines ...string) {
	r.Helper()
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n ", "")
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			r.Errorf("no line %q in:\n%s", line, text)
		}
	}
}

func TestReminders(t *testing.T) {
	t.Parallel()
	r := newRadicale(t)
	for name, test := range map[string]struct {
		args  string
		lines []string
	}{
		"an event": {
			`{"summary":"Payment; due, \\ \"Ä\"","start":"2026-02-15T10:00:00+01:00","end":"2026-02-15T11:30:00+01:00","description":"One\nTwo","location":"Room 1","alarm_minutes":15}`,
			[]string{"BEGIN:VEVENT", `SUMMARY:Payment\; due\, \\ "Ä"`, "DTSTART:20260215T090000Z", "DTEND:20260215T103000Z", `DESCRIPTION:One\nTwo`, "LOCATION:Room 1", "TRIGGER:-PT15M", "ACTION:DISPLAY"},
		},
		"an event of two days":     {`{"summary":"Fair","start":"2026-02-27","end":"2026-02-28"}`, []string{"DTSTART;VALUE=DATE:20260227", "DTEND;VALUE=DATE:20260301"}},
		"an event of no time":      {`{"summary":"Call","start":"2026-02-15T10:00:00Z","end":"2026-02-15T10:00:00Z"}`, []string{"BEGIN:VEVENT", "DTSTART:20260215T100000Z"}},
		"a task":                   {`{"as":"task","summary":"Report","start":"2026-02-15T10:00:00Z","end":"2026-02-16T10:00:00Z"}`, []string{"BEGIN:VTODO", "DTSTART:20260215T100000Z", "DUE:20260216T100000Z"}},
		"a task due at once":       {`{"as":"task","summary":"Report","start":"2026-02-15T10:00:00Z","end":"2026-02-15T10:00:00Z","alarm_minutes":5}`, []string{"BEGIN:VTODO", "DUE:20260215T100000Z", "TRIGGER;RELATED=END:-PT5M"}},
		"a task due on a day":      {`{"as":"task","summary":"Report","start":"2026-02-15","end":"2026-02-15"}`, []string{"BEGIN:VTODO", "DUE;VALUE=DATE:20260215"}},
		"a task of several days":   {`{"as":"task","summary":"Report","start":"2026-02-15","end":"2026-02-17"}`, []string{"DTSTART;VALUE=DATE:20260215", "DUE;VALUE=DATE:20260217"}},
		"another task of the same": {`{"as":"task","summary":"Report","start":"2026-02-15","end":"2026-02-17"}`, nil},
	} {
		result := r.call(name, dav.ToolReminder, test.args, source.KindDone, "")

		var of struct{ UID string }
		if err := json.Unmarshal(result, &of); err != nil {
			t.Fatal(err)
		}
		status, text := r.server.Send(http.MethodGet, r.server.Calendar+of.UID+".ics", "")
		if status != http.StatusOK {
			t.Fatalf("%s: GET = %d", name, status)
		}
		r.contains(text, append(test.lines, "UID:"+of.UID)...)
	}
	if n := strings.Count(r.server.Items(r.server.Calendar), "\nUID:"); n != 8 {
		t.Errorf("the calendar has %d items, want 8", n)
	}
	for _, args := range []string{
		`{"summary":"a","start":"2026-02-16","end":"2026-02-15"}`,
		`{"summary":"a","start":"2026-02-15","end":"2026-02-15T10:00:00Z"}`,
		`{"summary":"a","start":"2026-02-30","end":"2026-03-01"}`,
	} {
		r.call(args, dav.ToolReminder, args, source.KindRefused, source.CodeInvalidArgs)
	}
}

func TestContacts(t *testing.T) {
	t.Parallel()
	r := newRadicale(t)
	const args = `{"formatted_name":"Jane Q. Döe","emails":["jane@newcompany.com","j@example.org"],"phones":["+1 555 0100"],"organization":"New, Company; Inc","title":"CTO","note":"met\nin May"}`

	r.call("k", dav.ToolContact, args, source.KindDone, "")

	t.Run("events", func(t *testing.T) { r.T = t; r.readsEvents() })
	r.contains(r.server.Items(r.server.AddressBook), "VERSION:3.0", "FN:Jane Q. Döe", "EMAIL:jane@newcompany.com", "EMAIL:j@example.org", "TEL:+1 555 0100", "TITLE:CTO", `NOTE:met\nin May`)
}

// readsEvents reads a day on which clocks change: a series, an event that was moved,
// a whole day, one that the source created, and one that is not valid.
func (r radicale) readsEvents() {
	const head, foot = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nDTSTAMP:20260101T000000Z\r\nUID:", "\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
	for uid, event := range map[string]string{
		"a": "SUMMARY:Standup\r\nLOCATION:Room 4\r\nORGANIZER:mailto:Bob@example.com\r\nATTENDEE;CN=Cy:mailto:cy@example.com\r\nDTSTART;TZID=Europe/Berlin:20261019T090000\r\nDTEND;TZID=Europe/Berlin:20261019T093000\r\nRRULE:FREQ=DAILY",
		"b": "SUMMARY:Moved\r\nDTSTART:20261001T120000Z\r\nRRULE:FREQ=WEEKLY\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nDTSTAMP:20260101T000000Z\r\nUID:b\r\nSUMMARY:Moved\r\nRECURRENCE-ID:20261022T120000Z\r\nDTSTART:20261025T130000Z",
		"c": "SUMMARY:Fair\r\nDTSTART;VALUE=DATE:20261025",
		"d": "SUMMARY:Another day\r\nDTSTART:20261026T120000Z",
		"e": "SUMMARY:Each hour\r\nDTSTART:20261025T000000Z\r\nRRULE:FREQ=HOURLY;COUNT=3",
		"f": "SUMMARY:Floating\r\nDTSTART:20261025T000000",
	} {
		if status, text := r.server.Send(http.MethodPut, r.server.Calendar+uid+".ics", head+uid+"\r\n"+event+foot); status != http.StatusCreated {
			r.Fatalf("PUT %s = %d %s", uid, status, text)
		}
	}
	r.call("k2", dav.ToolReminder, `{"summary":"Pay","start":"2026-10-25T20:00:00+01:00","end":"2026-10-25T20:30:00+01:00"}`, source.KindDone, "")

	var got dav.Events
	result := r.call("e", dav.ToolEvents, `{"from":"2026-10-25T00:00:00+02:00","until":"2026-10-26T00:00:00+01:00","zone":"Europe/Berlin"}`, source.KindDone, "")
	if err := json.Unmarshal(result, &got); err != nil {
		r.Fatal(err)
	}

	at := func(clock string) time.Time {
		t, err := time.Parse(time.RFC3339, "2026-10-"+clock+":00Z")
		if err != nil {
			r.Fatal(err)
		}
		return t
	}
	want := dav.Events{Unread: 1, Events: []dav.Event{
		{Start: at("24T22:00"), End: at("25T23:00"), WholeDay: true, Summary: "Fair"},
		{Start: at("24T22:00"), End: at("24T22:00"), Summary: "Floating"},
		{Start: at("25T08:00"), End: at("25T08:30"), Summary: "Standup", Location: "Room 4", People: []string{"bob@example.com", "cy@example.com"}},
		{Start: at("25T13:00"), End: at("25T13:00"), Summary: "Moved"},
		{Start: at("25T19:00"), End: at("25T19:30"), Summary: "Pay"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		r.Errorf("events (-want +got):\n%s", diff)
	}
	for _, args := range []string{
		`{"from":"2026-10-25T00:00:00Z","until":"2026-12-26T00:00:00Z","zone":"UTC"}`, `{"from":"2026-10-25T00:00:00Z","until":"2026-10-25T00:00:00Z","zone":"UTC"}`,
		`{"from":"2026-10-25T00:00:00Z","until":"2026-10-26T00:00:00Z","zone":"Mars"}`,
	} {
		r.call(args, dav.ToolEvents, args, source.KindRefused, source.CodeInvalidArgs)
	}
}

// TestCreatedOnceAndReverted walks an item from its creation to its deletion, and
// tries each call at each point.
func TestCreatedOnceAndReverted(t *testing.T) {
	t.Parallel()
	r := newRadicale(t)
	for kind, create := range map[string]struct{ tool, args, collection string }{
		"reminder": {dav.ToolReminder, `{"summary":"Pay","start":"2026-02-15","end":"2026-02-15"}`, r.server.Calendar},
		"contact":  {dav.ToolContact, `{"formatted_name":"Jane","emails":["jane@example.com"]}`, r.server.AddressBook},
	} {
		found := func(want string) {
			t.Helper()
			if got := r.call("f", dav.ToolFind, `{"kind":"`+kind+`","key":"`+kind+`"}`, source.KindDone, ""); string(got) != `{"found":`+want+`}` {
				t.Errorf("find of a %s = %s, want %s", kind, got, want)
			}
		}
		found("false")
		first := r.call(kind, create.tool, create.args, source.KindDone, "")
		again := r.call(kind, create.tool, create.args, source.KindConflict, source.CodeConflict)
		if string(first) != string(again) {
			t.Errorf("a repeated call returns %s, want %s", again, first)
		}
		found("true")
		if n := strings.Count(r.server.Items(create.collection), "\nUID:"); n != 1 {
			t.Errorf("the collection has %d items, want 1", n)
		}
		r.call("d", dav.ToolDelete, string(first), source.KindDone, "")
		r.call("d", dav.ToolDelete, string(first), source.KindConflict, source.CodeConflict)
		found("false")
	}
}

// TestChangedItemIsKept checks that an item that its owner changed is not deleted.
func TestChangedItemIsKept(t *testing.T) {
	t.Parallel()
	r := newRadicale(t)
	first := r.call("k", dav.ToolReminder, `{"summary":"Pay","start":"2026-02-15","end":"2026-02-15"}`, source.KindDone, "")
	var of struct{ UID string }
	if err := json.Unmarshal(first, &of); err != nil {
		t.Fatal(err)
	}
	at := r.server.Calendar + of.UID + ".ics"
	_, text := r.server.Send(http.MethodGet, at, "")
	if status, _ := r.server.Send(http.MethodPut, at, strings.Replace(text, "SUMMARY:Pay", "SUMMARY:Paid", 1)); status != http.StatusCreated {
		t.Fatalf("PUT = %d", status)
	}

	r.call("d", dav.ToolDelete, string(first), source.KindRefused, source.CodeChanged)

	r.contains(r.server.Items(r.server.Calendar), "SUMMARY:Paid")
}

func TestRejectedByRadicale(t *testing.T) {
	t.Parallel()
	server := davtest.New(t)
	for name, test := range map[string]struct {
		calendar, password, code string
	}{
		"a wrong password":     {server.Calendar, "wrong", source.CodeUnauthorized},
		"a missing collection": {strings.Replace(server.Calendar, "calendar", "none", 1), davtest.Password, source.CodeNotFound},
		"another's collection": {strings.Replace(server.Calendar, davtest.User, "bob", 1), davtest.Password, source.CodeUnauthorized},
	} {
		src := open(t, dav.Config{Calendars: map[string]string{"a": test.calendar}, User: davtest.User, Password: rest.NewSecret(test.password)})

		got := src.Execute(t.Context(), source.Call{Key: "k", Tool: dav.ToolReminder, Args: remind("Pay").Args, Effect: envelope.EffectKeyed})

		read := src.Execute(t.Context(), source.Call{Key: "k", Tool: dav.ToolEvents, Args: json.RawMessage(`{"from":"2026-10-25T00:00:00Z","until":"2026-10-26T00:00:00Z","zone":"UTC"}`), Effect: envelope.EffectRead})
		if read.Kind == source.KindDone || read.Code != test.code || len(read.Result) > 0 {
			t.Errorf("events with %s = %s %q (%s) with %s, want %q", name, read.Kind, read.Code, read.Message, read.Result, test.code)
		}
		if got.Kind != source.KindRefused || got.Code != test.code {
			t.Errorf("Execute() with %s = %s %q (%s), want refused %q", name, got.Kind, got.Code, got.Message, test.code)
		}
	}
}
