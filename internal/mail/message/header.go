package message

import (
	"io"
	"mime"
	"net/mail"
	"strings"
	"time"

	"golang.org/x/net/idna"
	"golang.org/x/text/encoding/htmlindex"
)

// Limits of a single field.
const (
	maxFieldBytes = 64 << 10
	maxAddresses  = 1000
	maxIDs        = 200
)

func wordDecoder() *mime.WordDecoder {
	return &mime.WordDecoder{CharsetReader: func(charset string, input io.Reader) (io.Reader, error) {
		encoding, err := htmlindex.Get(charset)
		if err != nil {
			return nil, err
		}
		return encoding.NewDecoder().Reader(input), nil
	}}
}

// decodeWords decodes the encoded words (RFC 2047) of a value.
func decodeWords(value string) string {
	value = cutTo(value, maxFieldBytes)
	if !strings.Contains(value, "=?") {
		return value
	}
	decoded, err := wordDecoder().DecodeHeader(value)
	if err != nil {
		return value
	}
	return strings.ToValidUTF8(decoded, "\uFFFD")
}

// cutTo returns at most n bytes of a text, in whole characters.
func cutTo(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}

// readHeader parses the known header fields.
func (m *Message) readHeader() {
	for _, field := range m.Fields {
		switch strings.ToLower(field.Name) {
		case "from":
			m.From = m.addresses(m.From, field)
		case "sender":
			m.Sender = m.addresses(m.Sender, field)
		case "reply-to":
			m.ReplyTo = m.addresses(m.ReplyTo, field)
		case "to":
			m.To = m.addresses(m.To, field)
		case "cc":
			m.Cc = m.addresses(m.Cc, field)
		case "subject":
			if m.Subject == "" {
				m.Subject = m.oneLine(decodeWords(field.Value))
			}
		case "date":
			if m.Date.IsZero() {
				m.Date = m.date(field.Value)
			}
		case "message-id":
			if ids := messageIDs(field.Value); m.MessageID == "" && len(ids) > 0 {
				m.MessageID = ids[0]
			}
		case "in-reply-to":
			m.InReplyTo = append(m.InReplyTo, messageIDs(field.Value)...)
		case "references":
			m.References = append(m.References, messageIDs(field.Value)...)
		}
	}
	if len(m.From) == 0 {
		m.warn("no address in From")
	}
}

// usualDate is the layout of most dates, which may have a comment behind it.
const usualDate = "Mon, 2 Jan 2006 15:04:05 -0700"

func (m *Message) date(value string) time.Time {
	value = cutTo(value, 200)
	// ParseDate tries dozens of layouts.
	usual, _, _ := strings.Cut(value, " (")
	if date, err := time.Parse(usualDate, usual); err == nil {
		return date
	}
	if date, err := mail.ParseDate(value); err == nil {
		return date
	}
	for _, layout := range []string{
		usualDate, "Mon, 2 Jan 2006 15:04:05", "2 Jan 2006 15:04:05", "Mon Jan 2 15:04:05 2006",
		"Mon Jan 2 15:04:05 MST 2006", time.RFC3339,
	} {
		if date, err := time.Parse(layout, strings.Join(strings.Fields(value), " ")); err == nil {
			return date
		}
	}
	m.warn("invalid Date")
	return time.Time{}
}

// messageIDs returns the Message-IDs of a field, without angle brackets.
func messageIDs(value string) []string {
	var ids []string
	value = cutTo(value, maxFieldBytes)
	for rest := value; len(ids) < maxIDs; {
		_, after, ok := strings.Cut(rest, "<")
		if !ok {
			break
		}
		id, after, ok := strings.Cut(after, ">")
		if !ok {
			break
		}
		if id = strings.TrimSpace(id); id != "" {
			ids = append(ids, id)
		}
		rest = after
	}
	if words := strings.Fields(value); len(ids) == 0 && len(words) == 1 {
		ids = append(ids, strings.Trim(words[0], "<>"))
	}
	return ids
}

// addresses appends the addresses of a field to the known ones.
func (m *Message) addresses(known []Address, field Field) []Address {
	value := cutTo(field.Value, maxFieldBytes)
	parser := mail.AddressParser{WordDecoder: wordDecoder()}
	parsed, err := parser.ParseList(value)
	if err != nil {
		parsed = looseAddresses(value)
	}
	for _, a := range parsed {
		if len(known) >= maxAddresses {
			m.note("limit", "addresses", 1, 0)
			break
		}
		known = append(known, Address{Name: m.oneLine(a.Name), Addr: normalAddress(a.Address)})
	}
	return known
}

// looseAddresses parses an invalid list: every piece between commas that
// contains an @.
func looseAddresses(value string) []*mail.Address {
	var found []*mail.Address
	for _, piece := range splitList(value) {
		name, addr := "", strings.TrimSpace(piece)
		if open := strings.LastIndexByte(piece, '<'); open >= 0 {
			name = strings.Trim(strings.TrimSpace(piece[:open]), `"'`)
			addr, _, _ = strings.Cut(piece[open+1:], ">")
		} else if words := strings.Fields(piece); len(words) > 1 {
			addr = ""
			for _, word := range words {
				if strings.Contains(word, "@") {
					addr = strings.Trim(word, `()"'`)
				}
			}
		}
		addr = strings.TrimSpace(addr)
		if strings.Contains(addr, "@") || name != "" {
			found = append(found, &mail.Address{Name: decodeWords(name), Address: addr})
		}
	}
	return found
}

// splitList splits at commas and semicolons outside quotes and angle brackets.
func splitList(value string) []string {
	var pieces []string
	quoted, angle, start := false, false, 0
	for i := range len(value) {
		switch c := value[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '<':
			angle = true
		case c == '>':
			angle = false
		case (c == ',' || c == ';') && !angle:
			pieces = append(pieces, value[start:i])
			start = i + 1
		}
	}
	return append(pieces, value[start:])
}

// normalAddress returns an address in lower case with its domain in ASCII.
func normalAddress(addr string) string {
	addr = strings.ToLower(strings.TrimSpace(addr))
	at := strings.LastIndexByte(addr, '@')
	if at < 0 || isASCII(addr) {
		return addr
	}
	domain, err := idna.Lookup.ToASCII(addr[at+1:])
	if err != nil {
		return addr
	}
	return addr[:at+1] + domain
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
