package message_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// archive returns a zip archive; flags are those of its second entry.
func archive(t *testing.T, flags uint16, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i, name := range names {
		header := &zip.FileHeader{Name: name, Method: zip.Store}
		if i == 1 {
			header.Flags = flags
		}
		entry, err := w.CreateRaw(header)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write(nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func attached(header string, content []byte) []byte {
	return lines("From: a@example.org", "Content-Type: multipart/mixed; boundary=b", "", "--b", "", "See the file.", "--b",
		header, "Content-Transfer-Encoding: base64", "", base64.StdEncoding.EncodeToString(content), "--b--")
}

func TestParseAttachments(t *testing.T) {
	t.Parallel()

	const word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	plain := archive(t, 0, "a.txt", "b.txt")
	for name, c := range map[string]struct {
		header  string
		content []byte
		want    message.Attachment
	}{
		"a program named as a picture": {
			"Content-Type: image/png; name=\"cat.png\"", []byte("MZ\x90\x00"),
			message.Attachment{Name: "cat.png", Declared: "image/png", Detected: "application/x-msdownload", Size: 4},
		},
		"a name with marks of direction and folders": {
			"Content-Type: application/octet-stream\r\nContent-Disposition: attachment; filename*=utf-8''..%2Fbill%E2%80%AEfdp.exe", []byte("%PDF-1.4"),
			message.Attachment{Name: "billfdp.exe", Declared: "application/octet-stream", Detected: "application/pdf", Size: 8},
		},
		"an encoded name": {
			"Content-Type: text/csv; name=\"=?utf-8?b?w7xiZXJzaWNodC5jc3Y=?=\"", []byte("a,b"),
			message.Attachment{Name: "übersicht.csv", Declared: "text/csv", Detected: "text/plain", Size: 3},
		},
		"an archive": {
			"Content-Type: application/zip; name=a.zip", plain,
			message.Attachment{Name: "a.zip", Declared: "application/zip", Detected: "application/zip", Size: int64(len(plain))},
		},
		"an archive with an encrypted entry": {
			"Content-Type: application/zip; name=a.zip", archive(t, 1, "a.txt", "b.txt"),
			message.Attachment{Name: "a.zip", Declared: "application/zip", Detected: "application/zip", Size: int64(len(plain)), Encrypted: true},
		},
		"a document": {
			"Content-Type: application/msword; name=a.doc", archive(t, 0, "[Content_Types].xml", "word/document.xml"),
			message.Attachment{Name: "a.doc", Declared: "application/msword", Detected: word, Size: 259},
		},
		"an inline picture": {
			"Content-Type: image/gif\r\nContent-ID: <a>", []byte("GIF89a"),
			message.Attachment{Declared: "image/gif", Detected: "image/gif", Size: 6, Inline: true},
		},
		"text in a file": {
			"Content-Type: text/html\r\nContent-Disposition: attachment; filename=a.html", []byte("<html><form>Hidden"),
			message.Attachment{Name: "a.html", Declared: "text/html", Detected: "text/html", Size: 18},
		},
	} {
		m := message.Parse(attached(c.header, c.content))
		c.want.Size = int64(len(c.content))
		if diff := cmp.Diff([]message.Attachment{c.want}, m.Attachments); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if m.Text != "See the file." || m.Forms > 0 {
			t.Errorf("%s: Text = %q", name, m.Text)
		}
	}
}

func TestParseLargeAttachment(t *testing.T) {
	t.Parallel()

	const size = 6 << 20
	m := message.Parse(attached("Content-Type: application/zip; name=a.zip", append(archive(t, 1, "a", "b"), make([]byte, size)...)))

	if len(m.Attachments) != 1 || m.Attachments[0].Size <= size || m.Attachments[0].Encrypted {
		t.Errorf("Attachments = %+v, want one that was not opened", m.Attachments)
	}
	if len(m.Notes) != 1 || m.Notes[0].Step != "limit" {
		t.Errorf("Notes = %+v", m.Notes)
	}
}

func TestParseEvent(t *testing.T) {
	t.Parallel()

	event := func(lines string) string { return "BEGIN:VEVENT\r\n" + lines + "\r\nEND:VEVENT\r\n" }
	const start = "DTSTART;TZID=Europe/Berlin:20261202T190000"
	day := time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC)
	for lines, want := range map[string]time.Time{
		event(start):                         day,
		event("dtstart;VALUE=DATE:20261202"): day,
		"BEGIN:STANDARD\r\nDTSTART:19700101T000000\r\nEND:STANDARD\r\n" + event(start): day,
		event(start) + event(start):           {},
		event(start + "\r\n" + start):         {},
		event(start + "\r\nRRULE:FREQ=DAILY"): {},
		event(start + "\r\nSTATUS:CANCELLED"): {},
		"METHOD:CANCEL\r\n" + event(start):    {},
		event("DTSTART:2026"):                 {},
		event("DTSTART:99999999T000000"):      {},
		start + "\r\n":                        {},
	} {
		m := message.Parse(attached("Content-Type: text/calendar", []byte("BEGIN:VCALENDAR\r\n"+lines+"END:VCALENDAR\r\n")))
		if !m.Event.Equal(want) {
			t.Errorf("%q: Event = %v, want %v", lines, m.Event, want)
		}
	}
}

func TestParseCalendar(t *testing.T) {
	t.Parallel()

	invitation := []byte("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n")
	for header, want := range map[string]string{
		"Content-Type: text/calendar; charset=utf-8":          "REQUEST",
		"Content-Type: text/calendar; method=CANCEL":          "REQUEST",
		"Content-Type: application/octet-stream; name=a.ics":  "REQUEST",
		"Content-Type: application/octet-stream; name=a.text": "REQUEST",
	} {
		if m := message.Parse(attached(header, invitation)); m.Calendar != want || len(m.Attachments) != 1 {
			t.Errorf("%s: Calendar = %q, want %q", header, m.Calendar, want)
		}
	}
	if m := message.Parse(attached("Content-Type: text/calendar; method=reply", []byte("BEGIN:VCALENDAR"))); m.Calendar != "REPLY" {
		t.Errorf("Calendar = %q, want that of the header", m.Calendar)
	}
}
