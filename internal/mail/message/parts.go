package message

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"mime"
	"slices"
	"strings"
	"time"

	gomessage "github.com/emersion/go-message"
	"github.com/emersion/go-message/textproto"
)

// Limits of the MIME tree. Parts beyond them are not opened, and noted.
const (
	maxDepth     = 12
	maxParts     = 300
	maxTextBytes = 1 << 20 // of one part
	maxTexts     = 4 << 20 // of all parts
	maxOpened    = 5 << 20 // of an attachment
)

// leaf is a part without subparts.
type leaf struct {
	mediaType   string
	charset     string
	disposition string
	name        string
	// alternatives holds the numbers of the multipart/alternative containers
	// around the leaf, outermost first.
	alternatives []int
	// content is the decoded content up to the limit of its kind; size is the
	// full size.
	content []byte
	size    int64
	// unicode reports whether the content is UTF-8 already.
	unicode bool
	// related reports whether a text refers to the part by its Content-ID.
	related bool
	// detected, encrypted, method, event and calendar describe an attachment.
	detected, method string
	calendar         string
	event            time.Time
	encrypted        bool
}

// text reports whether mail programs show the part as text.
func (l *leaf) text() bool {
	kind, ok := strings.CutPrefix(l.mediaType, "text/")
	if !ok {
		return !strings.Contains(l.mediaType, "/")
	}
	switch kind {
	case "calendar", "vcard", "x-vcard", "directory", "css", "csv", "xml", "rtf", "javascript", "x-shellscript":
		return false
	}
	return true
}

func (l *leaf) html() bool { return l.mediaType == "text/html" }

// attached reports whether a text is an attachment rather than shown.
func (l *leaf) attached() bool {
	return l.disposition == "attachment" || l.name != ""
}

// errLimit stops the walk.
var errLimit = errors.New("limit of parts")

// tree reads the MIME tree of one message.
type tree struct {
	m      *Message
	leaves []leaf
	// alternatives counts the multipart/alternative containers.
	alternatives int
	texts        int64
	// cut reports whether the message ends inside a part.
	cut bool
}

// partHeader is the parsed header of a part.
type partHeader struct {
	mediaType, encoding, disposition, name, charset, boundary, method string
	related                                                           bool
}

func readPartHeader(get func(name string) string) partHeader {
	h := partHeader{encoding: strings.ToLower(strings.TrimSpace(get("Content-Transfer-Encoding")))}
	var params map[string]string
	h.mediaType, params = mediaType(get("Content-Type"))
	h.mediaType = cmp.Or(h.mediaType, "text/plain")
	h.charset, h.boundary, h.name, h.method = params["charset"], params["boundary"], params["name"], methodName(params["method"])
	h.related = get("Content-Id") != ""
	if value := get("Content-Disposition"); value != "" {
		h.disposition, params = mediaType(value)
		if name := params["filename"]; name != "" {
			h.name = name
		}
	}
	return h
}

// mediaType parses a value with parameters. For an invalid one it returns the
// text before the first semicolon and the parameters that can be parsed.
func mediaType(value string) (string, map[string]string) {
	value = cutTo(value, maxFieldBytes)
	kind, params, err := mime.ParseMediaType(value)
	if err == nil {
		return kind, params
	}
	kind, rest, _ := strings.Cut(value, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	params = map[string]string{}
	for piece := range strings.SplitSeq(rest, ";") {
		name, value, ok := strings.Cut(piece, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if _, seen := params[name]; ok && !seen && len(params) < 20 {
			params[name] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return kind, params
}

// read walks the tree below a header. It returns an error if the body does not
// match the header.
func (t *tree) read(header partHeader, body io.Reader, depth int, alternatives []int) error {
	if !strings.HasPrefix(header.mediaType, "multipart/") {
		return t.readLeaf(header, body, alternatives)
	}
	if depth >= maxDepth {
		t.m.note("limit", "depth", 1, 0)
		return errLimit
	}
	if header.boundary == "" {
		return errors.New("multipart without a boundary")
	}
	if header.mediaType == "multipart/alternative" {
		t.alternatives++
		alternatives = append(alternatives[:len(alternatives):len(alternatives)], t.alternatives)
	}
	parts := textproto.NewMultipartReader(body, header.boundary)
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) || err != nil && t.cut {
			return nil
		}
		if err != nil {
			return err
		}
		inner := readPartHeader(part.Header.Get)
		if header.mediaType == "multipart/digest" && part.Header.Get("Content-Type") == "" {
			inner.mediaType = "message/rfc822"
		}
		if err := t.read(inner, part, depth+1, alternatives); err != nil {
			return err
		}
	}
}

// readLeaf decodes one part.
func (t *tree) readLeaf(header partHeader, body io.Reader, alternatives []int) error {
	if len(t.leaves) >= maxParts {
		t.m.note("limit", "parts", 1, 0)
		return errLimit
	}
	l := leaf{
		mediaType: header.mediaType, charset: header.charset, disposition: header.disposition, name: header.name,
		alternatives: alternatives, related: header.related, method: header.method,
	}
	var about gomessage.Header
	if header.encoding != "" {
		about.Set("Content-Transfer-Encoding", header.encoding)
	}
	entity, err := gomessage.New(about, body)
	if err != nil && !gomessage.IsUnknownEncoding(err) {
		return err
	}
	err = t.fill(&l, entity.Body)
	t.leaves = append(t.leaves, l)
	return err
}

// fill reads the content of a part up to the limit of its kind, and counts the
// rest.
func (t *tree) fill(l *leaf, content io.Reader) error {
	limit := int64(maxOpened)
	if l.text() && !l.attached() {
		limit = min(maxTextBytes, maxTexts-t.texts)
	}
	var err error
	l.content, err = io.ReadAll(io.LimitReader(content, limit))
	l.size = int64(len(l.content))
	var more int64
	if err == nil {
		more, err = io.Copy(io.Discard, content)
		l.size += more
	}
	if l.text() && !l.attached() {
		t.texts += int64(len(l.content))
		if more > 0 {
			t.m.note("limit", "text", 1, int(more))
		}
	}
	if !l.text() {
		l.inspect()
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		// Keep the present part of a truncated message.
		t.cut = true
		return nil
	}
	return err
}

// plainLeaf returns the only part of a message whose body is plain text.
func plainLeaf(header partHeader, body []byte) (leaf, bool) {
	l := leaf{
		mediaType: header.mediaType, charset: header.charset, disposition: header.disposition, name: header.name,
		content: body, size: int64(len(body)),
	}
	switch header.encoding {
	case "", "7bit", "8bit", "binary":
		return l, l.text() && !l.attached() && len(body) <= maxTextBytes
	}
	return l, false
}

// hollow reports whether all parts are empty.
func hollow(leaves []leaf) bool {
	return !slices.ContainsFunc(leaves, func(l leaf) bool { return l.size > 0 })
}

// readParts returns the leaves of a message.
func (m *Message) readParts(raw, body []byte) []leaf {
	t := tree{m: m}
	header := readPartHeader(m.Get)
	if l, ok := plainLeaf(header, body); ok {
		return []leaf{l}
	}
	err := t.read(header, bytes.NewReader(body), 0, nil)
	if t.cut {
		m.warn("the message is cut off")
	}
	if errors.Is(err, errLimit) || err == nil && (!hollow(t.leaves) || len(bytes.TrimSpace(body)) == 0) {
		return t.leaves
	}
	m.warn("the MIME structure is broken")
	if leaves := m.readBroken(raw); !hollow(leaves) {
		return leaves
	}
	if !hollow(t.leaves) {
		return t.leaves
	}
	return []leaf{{mediaType: "text/plain", content: body[:min(len(body), maxTextBytes)], size: int64(len(body))}}
}
