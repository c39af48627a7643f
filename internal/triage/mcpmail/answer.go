package mcpmail

import (
	"encoding/json"
	"net/mail"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Limits of the data from answers.
const (
	maxKey    = 500
	maxFlags  = 100
	maxCursor = 8 << 10
	// maxItems limits the members of a list in one answer.
	maxItems = 10_000
	// ahead is how far in the future a message may have been received: a wrong
	// clock must not hide later messages.
	ahead = 5 * time.Minute
)

// entry is a message of a listing.
type entry struct {
	mailbox.Item
	// dated reports whether the listing has its time.
	dated bool
}

// list returns the members of a list in an answer. A field that the profile
// does not name, or that is missing or null, is an empty list.
func (s *server) list(doc any, name string) ([]any, error) {
	value, ok := s.profile.find(doc, name)
	if !ok || value == nil {
		return nil, nil
	}
	members, ok := value.([]any)
	if !ok || len(members) > maxItems {
		return nil, s.fault("the answer has no list, or too long a one, at "+s.profile.names[name], errOutage)
	}
	return members, nil
}

// maxFailed is how many entries in an answer may all be unusable before the
// answer itself is.
const maxFailed = 3

// entries reads a list of messages. One without a valid id is Unusable, unless
// all of several are: then the answer is invalid.
func (s *server) entries(doc any, name, folder string, now time.Time) ([]entry, error) {
	members, err := s.list(doc, name)
	if err != nil {
		return nil, err
	}
	all := make([]entry, 0, len(members))
	unusable := 0
	for _, member := range members {
		e, ok := s.entry(member, folder, now)
		if !ok {
			unusable++
			e = entry{Item: mailbox.Item{Location: mailbox.Location{Folder: folder}, Received: now, Unusable: "the server gives the message no usable id"}, dated: true}
		}
		all = append(all, e)
	}
	if unusable >= maxFailed && unusable == len(all) {
		return nil, s.fault("a message in the answer at "+s.profile.names[name]+" has no usable id", errOutage)
	}
	return all, nil
}

func (s *server) entry(member any, folder string, now time.Time) (e entry, ok bool) {
	id, _ := s.profile.find(member, "item.id")
	key, ok := keyOf(id)
	if !ok {
		return entry{}, false
	}
	e.Location = mailbox.Location{Folder: folder, Key: key}
	if at, found := s.profile.find(member, "item.received"); found {
		e.Received, e.dated = timeOf(at, now)
	}
	if size, found := s.profile.find(member, "item.size"); found {
		e.Size = max(numberOf(size), 0)
	}
	if flags, found := s.profile.find(member, "item.flags"); found {
		e.Flags = s.flagsOf(flags)
	}
	return e, true
}

// keyOf returns the text of an id, which is a text or an integer.
func keyOf(id any) (string, bool) {
	var key string
	switch id := id.(type) {
	case string:
		key = id
	case json.Number:
		if _, err := strconv.ParseUint(id.String(), 10, 64); err != nil {
			return "", false
		}
		key = id.String()
	}
	ok := key != "" && len(key) <= maxKey && utf8.ValidString(key) && !strings.ContainsFunc(key, unicode.IsControl)
	return key, ok
}

func (s *server) flagsOf(value any) []string {
	members, _ := value.([]any)
	var named []string
	for _, member := range members[:min(len(members), maxFlags)] {
		if name, ok := member.(string); ok {
			named = append(named, name)
		}
	}
	var flags []string
	for _, flag := range s.profile.flags(named) {
		if mailbox.CheckFlag(flag) == nil {
			flags = append(flags, flag)
		}
	}
	return mailbox.Flags(flags...)
}

// timeOf parses a time: RFC 3339, a date of mail, or seconds or milliseconds
// since 1970 as a number or its text. It is never far in the future.
func timeOf(value any, now time.Time) (time.Time, bool) {
	text, _ := value.(string)
	if number, ok := value.(json.Number); ok {
		text = number.String()
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = mail.ParseDate(text)
	}
	if err != nil {
		n, bad := strconv.ParseInt(text, 10, 64)
		if bad != nil || n < 0 {
			return time.Time{}, false
		}
		const milliseconds = 100_000_000_000 // seconds until the year 5138
		if at, err = time.Unix(n, 0), nil; n >= milliseconds {
			at = time.UnixMilli(n)
		}
	}
	if latest := now.Add(ahead); at.After(latest) {
		at = latest
	}
	return at.UTC(), at.Unix() > 0
}

func numberOf(value any) int64 {
	number, _ := value.(json.Number)
	n, err := number.Int64()
	if err != nil {
		return 0
	}
	return n
}

// text returns a text in an answer, or "".
func (s *server) text(doc any, name string) string {
	value, _ := s.profile.find(doc, name)
	text, _ := value.(string)
	return text
}

// cursor returns a cursor of the server in an answer: a text, or a number as
// text.
func (s *server) cursor(doc any, name string) (string, error) {
	value, _ := s.profile.find(doc, name)
	text, ok := value.(string)
	if number, is := value.(json.Number); is {
		text, ok = number.String(), true
	}
	if !ok && value != nil || len(text) > maxCursor {
		return "", s.fault("the answer has no usable cursor at "+s.profile.names[name], errOutage)
	}
	return text, nil
}

func (s *server) truth(doc any, name string) bool {
	value, _ := s.profile.find(doc, name)
	is, _ := value.(bool)
	return is
}
