package invitation_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-ical"
	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/invitation"
	"github.com/countersign-dev/countersign/internal/mail/message"
)

const owner = "ada@example.org"

func clock() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// calendar is an invitation with one event.
const calendar = `BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//Example//EN
METHOD:REQUEST
BEGIN:VTIMEZONE
TZID:Custom/Berlin
BEGIN:STANDARD
DTSTART:19701025T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
UID:4\,2@example.com
SEQUENCE:7
DTSTAMP:20260228T090000Z
DTSTART;TZID=Europe/Berlin:20260310T090000
DTEND;TZID=Europe/Berlin:20260310T100000
SUMMARY:Plans
ORGANIZER;CN="Bob, of Sales":mailto:Bob@Example.com
ATTENDEE;CN=Eve;RSVP=TRUE:mailto:eve@example.org
ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=
 TRUE;CN="Ada; L.";X-NUM=0:MAILTO:ada@example.org
END:VEVENT
END:VCALENDAR
`

// mailOf returns a mail with a calendar.
func mailOf(calendar string) string {
	return "From: Bob <bob@example.com>\nTo: ada@example.org\nSubject: Plans\nMIME-Version: 1.0\n" +
		"Content-Type: multipart/mixed; boundary=o\n\n--o\nContent-Type: multipart/alternative; boundary=i\n\n" +
		"--i\nContent-Type: text/plain; charset=iso-8859-1\n\nPlans\n" +
		"--i\nContent-Type: text/calendar; charset=utf-8; method=REQUEST\nContent-Transfer-Encoding: base64\n\n" + wrap(calendar) + "\n--i--\n" +
		"--o\nContent-Type: application/ics; name=invite.ics\nContent-Disposition: attachment; filename=invite.ics\nContent-Transfer-Encoding: base64\n\n" +
		wrap(crlf(calendar)) + "\n--o--\n"
}

func crlf(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }

// wrap encodes a text in base64.
func wrap(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func read(mail string) (invitation.Invitation, error) {
	raw := []byte(crlf(mail))
	return invitation.Read(raw, message.Parse(raw), []string{"other@example.org", owner}, clock())
}

// TestReply checks that an answer repeats what identifies the event, the organizer
// and the attendee, and nothing else.
func TestReply(t *testing.T) {
	t.Parallel()
	series := strings.Replace(calendar, "SEQUENCE:7\n", "RECURRENCE-ID;TZID=Custom/Berlin:20260310T090000\n", 1)
	for name, test := range map[string]struct {
		calendar string
		answer   invitation.Answer
		want     string
	}{
		"accepted": {calendar, invitation.Accepted, `BEGIN:VCALENDAR
METHOD:REPLY
PRODID:-//Countersign//EN
VERSION:2.0
BEGIN:VEVENT
ATTENDEE;CN="Ada; L.";CUTYPE=INDIVIDUAL;PARTSTAT=ACCEPTED;ROLE=REQ-PARTICIP
 ANT;X-NUM=0:MAILTO:ada@example.org
DTSTAMP:20260301T120000Z
ORGANIZER;CN="Bob, of Sales":mailto:Bob@Example.com
SEQUENCE:7
UID:4\,2@example.com
END:VEVENT
END:VCALENDAR
`},
		"one of a series": {series, invitation.Declined, `BEGIN:VCALENDAR
METHOD:REPLY
PRODID:-//Countersign//EN
VERSION:2.0
BEGIN:VTIMEZONE
TZID:Custom/Berlin
BEGIN:STANDARD
DTSTART:19701025T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
ATTENDEE;CN="Ada; L.";CUTYPE=INDIVIDUAL;PARTSTAT=DECLINED;ROLE=REQ-PARTICIP
 ANT;X-NUM=0:MAILTO:ada@example.org
DTSTAMP:20260301T120000Z
ORGANIZER;CN="Bob, of Sales":mailto:Bob@Example.com
RECURRENCE-ID;TZID=Custom/Berlin:20260310T090000
UID:4\,2@example.com
END:VEVENT
END:VCALENDAR
`},
	} {
		i, err := read(mailOf(test.calendar))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := i.Reply(test.answer, clock())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(crlf(test.want), string(got)); diff != "" || i.Organizer != "Bob@Example.com" || i.Attendee != owner {
			t.Errorf("%s: from %s to %s (-want +got):\n%s", name, i.Attendee, i.Organizer, diff)
		}
	}
	i, _ := read(mailOf(calendar))
	if _, err := i.Reply("maybe", clock()); err == nil {
		t.Error("Reply accepts an unknown answer")
	}
}

// TestOtherInvitations checks forms that must be accepted.
func TestOtherInvitations(t *testing.T) {
	t.Parallel()
	replace := func(old, with string) string { return mailOf(strings.Replace(calendar, old, with, 1)) }
	for name, mail := range map[string]string{
		"a calendar alone": "From: bob@example.com\nContent-Type: text/calendar; method=request\n\n" + calendar,
		"a series":         replace("SUMMARY", "RRULE:FREQ=WEEKLY\nSUMMARY"),
		"an old series":    mailOf(strings.NewReplacer("20260310", "20200310", "SUMMARY", "RRULE:FREQ=WEEKLY;UNTIL=20260601T000000Z\nSUMMARY").Replace(calendar)),
		"a whole day":      mailOf(strings.NewReplacer("DTSTART;TZID=Europe/Berlin:20260310T090000", "DTSTART;VALUE=DATE:20260301", "DTEND;TZID=Europe/Berlin:20260310T100000\n", "").Replace(calendar)),
		"a long event":     mailOf(strings.NewReplacer("20260310T090000", "20260227T090000", "DTEND;TZID=Europe/Berlin:20260310T100000", "DURATION:P3D").Replace(calendar)),
		"an unknown zone":  mailOf(strings.NewReplacer("20260310", "20260301", "Europe/Berlin", "Mars").Replace(calendar)),
	} {
		if _, err := read(mail); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHostileInvitations checks that none of them is answered, and why.
func TestHostileInvitations(t *testing.T) {
	t.Parallel()
	replace := func(old, with string) string {
		changed := strings.Replace(calendar, old, with, 1)
		if changed == calendar {
			t.Fatalf("the calendar has no %q", old)
		}
		return mailOf(changed)
	}
	event := calendar[strings.Index(calendar, "BEGIN:VEVENT"):strings.Index(calendar, "END:VCALENDAR")]
	part := func(header, body string) string {
		return "From: bob@example.com\nMIME-Version: 1.0\n" + header + "\n\n" + body
	}
	const plain = "Content-Type: text/calendar; method=REQUEST"
	const kind, transfer = "Content-Type: multipart/mixed; boundary=b", "Content-Transfer-Encoding: "
	for name, test := range map[string]struct{ mail, why string }{
		"no calendar":                   {part("Content-Type: text/plain", "Plans"), "no invitation"},
		"a calendar as a file alone":    {part("Content-Type: application/ics", calendar), "no invitation"},
		"an invitation in a message":    {part("Content-Type: message/rfc822", mailOf(calendar)), "no invitation"},
		"two calendars":                 {part(kind, "--b\n"+plain+"\n\n"+calendar+"\n--b\n"+plain+"\n\n"+calendar+"\n--b--"), "several calendars"},
		"a file that differs":           {part(kind, "--b\n"+plain+"\n\n"+calendar+"\n--b\nContent-Type: application/octet-stream; name=A.ICS\n\n"+strings.ToLower(calendar)+"\n--b--"), "several calendars"},
		"two events":                    {replace("END:VCALENDAR", event+"END:VCALENDAR"), "several events"},
		"a second object":               {mailOf(calendar + calendar), "followed by something else"},
		"no event":                      {mailOf(strings.Replace(calendar, event, "", 1)), "no event"},
		"a task":                        {mailOf(strings.ReplaceAll(calendar, "VEVENT", "VTODO")), "something other than an event"},
		"no METHOD":                     {replace("METHOD:REQUEST\n", ""), "no METHOD"},
		"two METHODs":                   {replace("METHOD:REQUEST\n", "METHOD:REQUEST\nMETHOD:CANCEL\n"), "not REQUEST"},
		"a cancellation":                {replace("METHOD:REQUEST", "METHOD:CANCEL"), "not REQUEST"},
		"an answer":                     {replace("METHOD:REQUEST", "METHOD:REPLY"), "not REQUEST"},
		"another method in the type":    {strings.Replace(mailOf(calendar), "method=REQUEST", "method=CANCEL", 1), "not REQUEST"},
		"a cancelled event":             {replace("SUMMARY", "STATUS:cancelled\nSUMMARY"), "cancelled"},
		"an event that is over":         {mailOf(strings.ReplaceAll(calendar, "20260310", "20260228")), "over"},
		"a series that is over":         {mailOf(strings.NewReplacer("20260310", "20250310", "SUMMARY", "RRULE:FREQ=WEEKLY;UNTIL=20260101T000000Z\nSUMMARY").Replace(calendar)), "over"},
		"no UID":                        {replace("UID:4\\,2@example.com\n", ""), "UID 0 times"},
		"two UIDs":                      {replace("UID:", "UID:other\nUID:"), "UID 2 times"},
		"an endless UID":                {replace("UID:", "UID:"+strings.Repeat("a", 1001)), "too long"},
		"no start":                      {replace("DTSTART;TZID=Europe/Berlin:20260310T090000\n", ""), "DTSTART 0 times"},
		"a start that is no time":       {replace("DTSTART;TZID=Europe/Berlin:20260310T090000", "DTSTART:soon"), "DTSTART of the event is not valid"},
		"a SEQUENCE of words":           {replace("SEQUENCE:7", "SEQUENCE:7 of 9"), "SEQUENCE"},
		"no organizer":                  {replace(`ORGANIZER;CN="Bob, of Sales":mailto:Bob@Example.com`+"\n", ""), "ORGANIZER 0 times"},
		"two organizers":                {replace("ORGANIZER", "ORGANIZER:mailto:eve@evil.example\nORGANIZER"), "ORGANIZER 2 times"},
		"an organizer who did not send": {replace("mailto:Bob@Example.com", "mailto:eve@example.com"), "not the sender"},
		"an organizer by telephone":     {replace("mailto:Bob@Example.com", "tel:+4930901820"), "not the sender"},
		"two senders":                   {strings.Replace(mailOf(calendar), "Bob <bob@example.com>", "bob@example.com, eve@example.com", 1), "not the sender"},
		"an organizer with a query":     {replace("mailto:Bob@Example.com", "mailto:bob@example.com?bcc=eve@evil.example"), "not the sender"},
		"an attendee who is not us":     {replace("MAILTO:ada@example.org", "MAILTO:ada@example.com"), "does not invite"},
		"the owner twice":               {replace("END:VEVENT", "ATTENDEE:mailto:other@example.org\nEND:VEVENT"), "more than once"},
		"a huge calendar":               {replace("SUMMARY:Plans", "SUMMARY:"+strings.Repeat("a", 256<<10)), "too large"},
		"endless parameters":            {replace("ATTENDEE;CN=Eve", `ATTENDEE;CN="`+strings.Repeat("a", 4<<10)+`"`), "not valid iCalendar"},
		"thousands of attendees":        {replace("ATTENDEE;CN=Eve", strings.Repeat("ATTENDEE:mailto:e@example.org\n", 2000)+"ATTENDEE;CN=Eve"), "ATTENDEE 2002 times"},
		"a carriage return in a name":   {replace(`"Ada; L."`, "\"Ada\rORGANIZER:mailto:eve@evil.example\""), "control characters"},
		"a line separator in a UID":     {replace("UID:4", "UID:4\u2028METHOD:CANCEL"), "control characters"},
		"a quotation mark in a name":    {replace(`CN="Ada; L."`, `CN=Ada"L`), "not valid iCalendar"},
		"a line without a colon":        {replace("SUMMARY:Plans", "SUMMARY;CN=Plans"), "not valid iCalendar"},
		"a component without an end":    {replace("END:VEVENT\n", ""), "not valid iCalendar"},
		"bytes that are not UTF-8":      {replace("SUMMARY:Plans", "SUMMARY:Pl\xe4ne"), "not UTF-8"},
		"another charset":               {part("Content-Type: text/calendar; charset=utf-7", calendar), "charset"},
		"an unknown encoding":           {part(plain+"\n"+transfer+"uuencode", calendar), "encoding"},
		"broken base64":                 {part(plain+"\n"+transfer+"base64", "QkVH!!!"), "encoding"},
		"a part without an end":         {part(kind+"\n", strings.Repeat("--b\nContent-Type: text/plain\n\n", 300)), "too many parts"},
	} {
		_, err := read(test.mail)
		if err == nil || !strings.Contains(err.Error(), test.why) {
			t.Errorf("%s: %v, want an error with %q", name, err, test.why)
		}
	}
}

// FuzzRead checks that an answer has exactly one event, and the properties of the
// invitation.
func FuzzRead(f *testing.F) {
	f.Add(calendar)
	f.Add(strings.NewReplacer("SUMMARY", "RRULE:FREQ=WEEKLY;COUNT=3\nRDATE:20260310\nSUMMARY", "TZID=Europe/Berlin", "VALUE=DATE").Replace(calendar))
	f.Add("BEGIN:VCALENDAR\nA;B=\"c\":d\nEND:VCALENDAR\n")
	f.Fuzz(func(t *testing.T, calendar string) {
		i, err := read("From: bob@example.com\nContent-Type: text/calendar\nContent-Transfer-Encoding: base64\n\n" + wrap(calendar))
		if err != nil {
			return
		}
		reply, err := i.Reply(invitation.Accepted, clock())
		if err != nil {
			return
		}
		got, err := ical.NewDecoder(strings.NewReader(string(reply))).Decode()
		if err != nil {
			t.Fatalf("%v in\n%s", err, reply)
		}
		events := got.Events()
		if len(events) != 1 || len(got.Props[ical.PropMethod]) != 1 || len(events[0].Props[ical.PropAttendee]) != 1 {
			t.Fatalf("the answer has something else:\n%s", reply)
		}
		for l := range strings.SplitSeq(string(reply), "\r\n") {
			if len(l) > 75 || strings.ContainsAny(l, "\r\n") {
				t.Fatalf("a line of %d bytes in\n%s", len(l), reply)
			}
		}
		if organizer := events[0].Props.Get(ical.PropOrganizer); organizer == nil || !strings.EqualFold(organizer.Value, "mailto:bob@example.com") {
			t.Fatalf("another organizer in\n%s", reply)
		}
	})
}
