package invitation

import (
	"bytes"
	"errors"
	"io"
	"strings"

	gomessage "github.com/emersion/go-message"
)

const (
	maxDepth = 10
	maxParts = 200
)

// parts collects the calendars of a mail.
type parts struct {
	found [][]byte
	// declared counts the parts of type text/calendar.
	declared, all int
}

// calendarOf returns the calendar of a mail. The mail may have it a second time, as
// a file.
func calendarOf(raw []byte) ([]byte, error) {
	var p parts
	entity, err := gomessage.Read(bytes.NewReader(raw))
	if err = p.read(entity, err, 0); err != nil {
		return nil, err
	}
	switch {
	case p.declared == 0:
		return nil, errors.New("the message has no invitation")
	case p.declared > 1:
		return nil, errors.New("the message has several calendars")
	}
	for _, other := range p.found[1:] {
		if !bytes.Equal(lines(other), lines(p.found[0])) {
			return nil, errors.New("the message has several calendars")
		}
	}
	return p.found[0], nil
}

// lines returns a text with the line ends of Unix and without blank lines at its end.
func lines(text []byte) []byte {
	return bytes.TrimRight(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), "\n")
}

// read collects the calendars of a part. A message in the message is not read: its
// invitation is for another person.
func (p *parts) read(e *gomessage.Entity, failed error, depth int) error {
	broken := errors.New("the MIME structure of the message is broken")
	if failed != nil && !gomessage.IsUnknownCharset(failed) && !gomessage.IsUnknownEncoding(failed) {
		return broken
	}
	if p.all++; depth > maxDepth || p.all > maxParts {
		return errors.New("the message has too many parts")
	}
	kind, params, err := e.Header.ContentType()
	if err != nil {
		return broken
	}
	if nested := e.MultipartReader(); nested != nil {
		for {
			part, err := nested.NextPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if part == nil {
				return broken
			}
			if err := p.read(part, err, depth+1); err != nil {
				return err
			}
		}
	}
	_, file, _ := e.Header.ContentDisposition()
	name := strings.ToLower(file["filename"] + params["name"])
	if kind != "text/calendar" && kind != "application/ics" && !strings.HasSuffix(name, ".ics") {
		return nil
	}
	charset := strings.ToLower(params["charset"])
	if failed != nil || charset != "" && charset != "utf-8" && charset != "us-ascii" {
		return errors.New("the charset or the encoding of the calendar is not supported")
	}
	text, err := io.ReadAll(io.LimitReader(e.Body, maxBytes+1))
	switch {
	case err != nil:
		return errors.New("the encoding of the calendar is broken")
	case len(text) > maxBytes:
		return errors.New("the calendar is too large")
	}
	if kind == "text/calendar" {
		if method := params["method"]; method != "" && !strings.EqualFold(method, "REQUEST") {
			return errors.New("the method of the calendar is not REQUEST")
		}
		p.declared++
		p.found = append([][]byte{text}, p.found...)
		return nil
	}
	p.found = append(p.found, text)
	return nil
}
