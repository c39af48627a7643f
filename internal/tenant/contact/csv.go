package contact

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// csvColumns are the columns of a do-not-contact list. Only value is required.
var csvColumns = [...]string{"kind", "value", "reason", "source", "expires_at"}

// maxRecord bounds one record of a CSV, so that an unclosed quote does not read
// the whole file into memory.
const maxRecord = 64 << 10

// LineError is an error at a place in a CSV. It is fault.Invalid and does not
// repeat the text there.
type LineError struct {
	// Line and Column count from 1, Column in bytes.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Field is the column's name; empty if the line itself is malformed.
	Field   string `json:"field,omitzero"`
	Message string `json:"message"`
}

// Error returns the place and the error.
func (e *LineError) Error() string {
	text := fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	if e.Field != "" {
		text += " (" + e.Field + ")"
	}
	return text + ": " + e.Message
}

// Unwrap makes errors.Is(err, fault.Invalid) hold.
func (*LineError) Unwrap() error { return fault.Invalid }

// CSVReader reads a do-not-contact list from CSV (RFC 4180), in bounded memory.
// The first line names the columns, in any order: kind, value, reason, source
// and expires_at. Only value is required. An empty kind is inferred. A time is
// RFC 3339 or a date.
type CSVReader struct {
	csv     *csv.Reader
	meter   *meter
	options Options
	columns []string
	// last is the line on which the last valid record ended.
	last int
}

// NewCSVReader reads the first line. An error in it is a *LineError; for an
// empty input it is io.EOF. The tenant's options configure the parsing of phone
// numbers.
func NewCSVReader(r io.Reader, o Options) (*CSVReader, error) {
	m := &meter{r: r}
	c := &CSVReader{csv: csv.NewReader(withoutMark(m)), meter: m, options: o}
	c.csv.FieldsPerRecord = -1
	c.csv.ReuseRecord = true
	header, err := c.record()
	if err != nil {
		return nil, err
	}
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case !slices.Contains(csvColumns[:], name):
			return nil, c.broken(i, "", "is not a column of this list; the first line names some of "+strings.Join(csvColumns[:], ", "))
		case slices.Contains(c.columns, name):
			return nil, c.broken(i, name, "is repeated; keep one")
		}
		c.columns = append(c.columns, name)
	}
	if !slices.Contains(c.columns, "value") {
		return nil, c.broken(0, "value", "is missing; the first line must name a column value")
	}
	return c, nil
}

// Read returns the next entry and the line on which it begins, or io.EOF. An
// invalid entry is a *LineError, after which Read can continue with the next
// one. Any other error is that of the input.
func (c *CSVReader) Read() (Entry, int, error) {
	record, err := c.record()
	if err != nil {
		return Entry{}, 0, err
	}
	line, _ := c.csv.FieldPos(0)
	if len(record) > len(c.columns) {
		return Entry{}, line, c.broken(len(c.columns), "", "is one field more than the first line names; put a text with a comma into quotes")
	}
	var e Entry
	for i, text := range record {
		text = withoutQuote(strings.TrimSpace(text))
		switch c.columns[i] {
		case "kind":
			e.Kind = Kind(strings.ToLower(text))
		case "value":
			e.Value = text
		case "reason":
			e.Reason = text
		case "source":
			e.Source = text
		case "expires_at":
			if text == "" {
				continue
			}
			at, err := parseTime(text)
			if err != nil {
				return Entry{}, line, c.broken(i, c.columns[i], "must be a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z")
			}
			e.ExpiresAt = &at
		}
	}
	if err := e.Validate(c.options); err != nil {
		return Entry{}, line, c.invalid(err, len(record), line)
	}
	return e, line, nil
}

// record reads one record.
func (c *CSVReader) record() ([]string, error) {
	c.meter.read = 0
	record, err := c.csv.Read()
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		message := "has a misplaced quote; put a text with quotes in quotes, and double each of its own"
		c.last = bad.Line
		return nil, &LineError{Line: bad.Line, Column: bad.Column, Message: message}
	}
	if errors.Is(err, errLongRecord) {
		return nil, &LineError{Line: c.last + 1, Column: 1, Message: errLongRecord.Error()}
	}
	if err == nil {
		c.last, _ = c.csv.FieldPos(len(record) - 1)
	}
	return record, err
}

// invalid returns the error about an entry with its place.
func (c *CSVReader) invalid(err error, fields, line int) error {
	bad, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok || len(bad.Fields) == 0 {
		return err
	}
	name := strings.TrimPrefix(bad.Fields[0].Pointer, "/")
	if i := slices.Index(c.columns, name); i >= 0 && i < fields {
		return c.broken(i, name, bad.Fields[0].Message)
	}
	return &LineError{Line: line, Column: 1, Field: name, Message: bad.Fields[0].Message}
}

// broken returns an error at a field of the last record.
func (c *CSVReader) broken(field int, name, message string) error {
	line, column := c.csv.FieldPos(field)
	return &LineError{Line: line, Column: column, Field: name, Message: message}
}

// parseTime parses a time, or a date as midnight in UTC.
func parseTime(text string) (time.Time, error) {
	if t, err := time.Parse(time.DateOnly, text); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, text)
}

// errLongRecord is the error for a record that exceeds maxRecord.
var errLongRecord = errors.New("is longer than 64 KiB; is a quote not closed?")

// meter counts the bytes read for one record.
type meter struct {
	r    io.Reader
	read int
}

func (m *meter) Read(p []byte) (int, error) {
	if m.read > maxRecord {
		return 0, errLongRecord
	}
	n, err := m.r.Read(p)
	m.read += n
	return n, err
}

// withoutMark skips the byte order mark that some programs write at the
// beginning of a file.
func withoutMark(r io.Reader) io.Reader {
	const mark = "\uFEFF"
	buffered := bufio.NewReader(r)
	if head, err := buffered.Peek(len(mark)); err == nil && string(head) == mark {
		_, _ = buffered.Discard(len(mark)) // they were peeked at
	}
	return buffered
}

// formula reports whether a spreadsheet interprets a text as a formula, or would
// without its leading single quotes.
func formula(text string) bool {
	rest := strings.TrimLeft(text, "'")
	return rest != "" && strings.ContainsRune("=+-@\t\r", rune(rest[0]))
}

// quoted prefixes a text that a spreadsheet interprets as a formula with a
// single quote. withoutQuote removes it.
func quoted(text string) string {
	if formula(text) {
		return "'" + text
	}
	return text
}

func withoutQuote(text string) string {
	if formula(text) {
		return strings.TrimPrefix(text, "'")
	}
	return text
}

// CSVWriter writes a do-not-contact list for a CSVReader, without formulas for
// spreadsheets.
type CSVWriter struct{ csv *csv.Writer }

// NewCSVWriter writes the first line.
func NewCSVWriter(w io.Writer) (*CSVWriter, error) {
	c := &CSVWriter{csv.NewWriter(w)}
	return c, c.csv.Write(csvColumns[:])
}

// Write writes entries, and flushes them.
func (c *CSVWriter) Write(entries ...Entry) error {
	for _, e := range entries {
		expires := ""
		if e.ExpiresAt != nil {
			expires = e.ExpiresAt.UTC().Format(time.RFC3339Nano)
		}
		if err := c.csv.Write([]string{string(e.Kind), quoted(e.Value), quoted(e.Reason), quoted(e.Source), expires}); err != nil {
			return err
		}
	}
	c.csv.Flush()
	return c.csv.Error()
}
