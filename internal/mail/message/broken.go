package message

import (
	"bytes"

	"github.com/jhillyerd/enmime/v2"
)

// maxBroken limits the bytes of a broken message that are read a second time,
// and maxBrokenContainers its depth, since each level costs another pass.
const (
	maxBroken           = 2 << 20
	maxBrokenContainers = 30
)

// readBroken reads a message that go-message rejects with enmime, which is some
// ten times slower and tolerates the mistakes of mail programs.
func (m *Message) readBroken(raw []byte) (leaves []leaf) {
	if len(raw) > maxBroken {
		m.note("limit", "broken", 1, len(raw)-maxBroken)
		raw = raw[:maxBroken]
	}
	if bytes.Count(bytes.ToLower(raw), []byte("multipart/")) > maxBrokenContainers || bytes.Count(raw, []byte("\n--")) > 2*maxParts {
		m.note("limit", "broken", 1, 0)
		return nil
	}
	defer func() {
		if recover() != nil {
			leaves = nil
			m.warn("the MIME structure cannot be read")
		}
	}()
	parser := enmime.NewParser(
		enmime.DisableTextConversion(true), enmime.DisableCharacterDetection(true), enmime.MaxStoredPartErrors(1),
		enmime.SkipMalformedParts(true), enmime.MultipartWOBoundaryAsSinglePart(true),
		enmime.SetReadPartErrorPolicy(func(*enmime.Part, error) bool { return true }),
	)
	envelope, err := parser.ReadEnvelope(bytes.NewReader(raw))
	if err != nil || envelope.Root == nil {
		return nil
	}
	return appendParts(nil, envelope.Root, nil, new(int), 0)
}

// appendParts appends the leaves of a part.
func appendParts(leaves []leaf, part *enmime.Part, inside []int, alternatives *int, depth int) []leaf {
	if depth > maxBrokenContainers {
		return leaves
	}
	if part.FirstChild != nil {
		if part.ContentType == "multipart/alternative" {
			*alternatives++
			inside = append(inside[:len(inside):len(inside)], *alternatives)
		}
		for child := part.FirstChild; child != nil && len(leaves) < maxParts; child = child.NextSibling {
			leaves = appendParts(leaves, child, inside, alternatives, depth+1)
		}
		return leaves
	}
	l := leaf{
		mediaType: part.ContentType, disposition: part.Disposition, name: part.FileName,
		alternatives: inside, content: part.Content, size: int64(len(part.Content)),
	}
	if l.mediaType == "" || l.mediaType == "multipart/alternative" || l.mediaType == "multipart/mixed" {
		l.mediaType = "text/plain"
	}
	l.unicode = l.text()
	limit := maxOpened
	if l.text() && !l.attached() {
		limit = maxTextBytes
	}
	l.content = l.content[:min(len(l.content), limit)]
	l.related = part.ContentID != ""
	if !l.text() {
		l.inspect()
	}
	return append(leaves, l)
}
