package message

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Limits of the calendars that are kept.
const (
	maxCalendar  = 256 << 10
	maxCalendars = 3
)

// attachments lists the parts that are not text of the message.
func (m *Message) attachments(leaves []leaf, shown []int) {
	next, several := 0, false
	for i := range leaves {
		l := &leaves[i]
		if next < len(shown) && shown[next] == i {
			next++
			continue
		}
		if l.method != "" && m.Calendar == "" {
			m.Calendar = l.method
		}
		if l.calendar != "" && len(m.Calendars) < maxCalendars && !slices.Contains(m.Calendars, l.calendar) {
			m.Calendars = append(m.Calendars, l.calendar)
		}
		several = several || !l.event.IsZero() && !m.Event.IsZero() && l.event != m.Event
		if !l.event.IsZero() {
			m.Event = l.event
		}
		if l.text() && !l.attached() {
			continue // the alternative that is not shown
		}
		if l.text() {
			l.inspect()
		}
		m.Attachments = append(m.Attachments, Attachment{
			Name: m.fileName(l.name), Declared: cutTo(l.mediaType, 200), Detected: l.detected, Size: l.size,
			Encrypted: l.encrypted, Inline: l.disposition == "inline" || l.related && l.disposition != "attachment",
		})
		if l.size > maxOpened {
			m.note("limit", "attachment", 1, 0)
		}
	}
	if several || m.Calendar == "CANCEL" {
		m.Event = time.Time{}
	}
}

// fileName returns the base name of a file, without invisible characters.
func (m *Message) fileName(name string) string {
	name = m.oneLine(decodeWords(strings.ToValidUTF8(name, "\uFFFD")))
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	const longest = 255
	return cutTo(name, longest)
}

// inspect examines the content of a part and releases it, unless it is text.
func (l *leaf) inspect() {
	l.detected = detect(l.content)
	whole := l.size == int64(len(l.content))
	l.encrypted = whole && bytes.HasPrefix(l.content, []byte("PK")) && encryptedZip(l.content)
	if l.mediaType == "text/calendar" || l.mediaType == "application/ics" || l.detected == "text/calendar" {
		if method := calendarMethod(l.content); method != "" {
			l.method = method
		}
		l.event = calendarEvent(l.content)
		if whole && len(l.content) <= maxCalendar {
			l.calendar = strings.ToValidUTF8(string(l.content), "\uFFFD")
		}
	}
	if !l.text() {
		l.content = nil
	}
}

// magic holds the first bytes of file types that the standard library does not
// detect.
var magic = []struct{ prefix, kind string }{
	{"MZ", "application/x-msdownload"},
	{"\x7fELF", "application/x-executable"},
	{"\xcf\xfa\xed\xfe", "application/x-mach-binary"},
	{"\xca\xfe\xba\xbe", "application/x-mach-binary"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"},
	{"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"},
	{"MSCF", "application/vnd.ms-cab-compressed"},
	{"ITSF", "application/vnd.ms-htmlhelp"},
	{"L\x00\x00\x00\x01\x14\x02\x00", "application/x-ms-shortcut"},
	{"{\\rtf", "application/rtf"},
	{"#!", "text/x-shellscript"},
	{"BEGIN:VCALENDAR", "text/calendar"},
	{"BEGIN:VCARD", "text/vcard"},
}

// detect returns the media type of some content.
func detect(content []byte) string {
	for _, m := range magic {
		if bytes.HasPrefix(content, []byte(m.prefix)) {
			return m.kind
		}
	}
	kind, _, _ := strings.Cut(http.DetectContentType(content), ";")
	if kind == "application/zip" {
		return zipKind(content)
	}
	return kind
}

// zipKind returns the media type of a zip archive by the names of its first
// entries.
func zipKind(content []byte) string {
	const head = 8 << 10
	content = content[:min(len(content), head)]
	for _, m := range []struct{ name, kind string }{
		{"word/", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"xl/", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
		{"ppt/", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
		{"application/vnd.oasis.opendocument", "application/vnd.oasis.opendocument"},
		{"application/epub+zip", "application/epub+zip"},
		{"AndroidManifest.xml", "application/vnd.android.package-archive"},
		{"META-INF/MANIFEST.MF", "application/java-archive"},
	} {
		if bytes.Contains(content, []byte(m.name)) {
			return m.kind
		}
	}
	return "application/zip"
}

// encryptedZip reports whether an entry of a zip archive is encrypted. It only
// reads the headers of the entries and unpacks nothing.
func encryptedZip(content []byte) bool {
	const (
		localHeader, directoryHeader = "PK\x03\x04", "PK\x01\x02"
		directoryEnd                 = "PK\x05\x06"
		localSize, directorySize     = 30, 46
		endSize                      = 22
		encrypted                    = 1
	)
	if len(content) >= localSize && bytes.HasPrefix(content, []byte(localHeader)) && content[6]&encrypted != 0 {
		return true
	}
	end := bytes.LastIndex(content, []byte(directoryEnd))
	if end < 0 || end+endSize > len(content) {
		return false
	}
	at := int64(binary.LittleEndian.Uint32(content[end+16:]))
	for at+directorySize <= int64(end) && bytes.HasPrefix(content[at:], []byte(directoryHeader)) {
		entry := content[at:]
		if entry[8]&encrypted != 0 {
			return true
		}
		name, extra, comment := binary.LittleEndian.Uint16(entry[28:]), binary.LittleEndian.Uint16(entry[30:]), binary.LittleEndian.Uint16(entry[32:])
		at += directorySize + int64(name) + int64(extra) + int64(comment)
	}
	return false
}

// calendarMethod returns the METHOD of an iCalendar object.
func calendarMethod(content []byte) string {
	const most = 50
	for range most {
		var line []byte
		line, content = cutLine(content)
		name, value, _ := bytes.Cut(line, []byte(":"))
		name, _, _ = bytes.Cut(name, []byte(";"))
		if bytes.EqualFold(bytes.TrimSpace(name), []byte("METHOD")) {
			return methodName(string(value))
		}
	}
	return ""
}

// calendarEvent returns the day of the only event of an iCalendar object, at
// midnight UTC; zero if it has none, more than one, or a repeated or cancelled
// one.
func calendarEvent(content []byte) (day time.Time) {
	const most = 5000
	starts, inside := 0, false
	for n := 0; len(content) > 0; n++ {
		if n == most {
			return time.Time{}
		}
		var line []byte
		line, content = cutLine(content)
		name, value, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(string(line))), ":")
		name, _, _ = strings.Cut(name, ";")
		switch {
		case value == "VEVENT":
			inside = name == "BEGIN"
		case !inside:
		case name == "RRULE", name == "RDATE", name == "STATUS" && value == "CANCELLED":
			return time.Time{}
		case name == "DTSTART":
			starts++
			day, _ = time.Parse("20060102", cutTo(value, 8)) // zero if it is invalid
		}
	}
	if starts != 1 {
		return time.Time{}
	}
	return day
}

// methodName returns a method in upper case, or "" if it is invalid.
func methodName(value string) string {
	const longest = 20
	value = strings.ToUpper(strings.TrimSpace(value))
	for i := range len(value) {
		if value[i] != '-' && (value[i] < 'A' || value[i] > 'Z') {
			return ""
		}
	}
	return cutTo(value, longest)
}
