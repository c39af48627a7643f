package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Stamp shows a time in the local zone; the zero time is empty.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Local(&t)
}

// Compact writes JSON without the spaces.
func Compact(raw json.RawMessage) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if len(raw) == 0 || encoder.Encode(raw) != nil {
		return string(raw)
	}
	return strings.TrimSpace(b.String())
}

// Done says that a change was made, unless err says that it was not.
func (a *App) Done(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	what := Line(fmt.Sprintf(format, args...))
	if a.JSON {
		return a.WriteJSON(map[string]string{"done": what})
	}
	if _, err := fmt.Fprintln(a.Out, what); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// WriteJSONLines writes values as one line of JSON each.
func WriteJSONLines[T any](a *App, all []T) error {
	for _, one := range all {
		if err := a.WriteJSON(one); err != nil {
			return err
		}
	}
	return nil
}

// FieldsText says what is wrong with the fields of a setting, one a line.
func FieldsText(err error) string {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return err.Error()
	}
	lines := make([]string, len(broken.Fields))
	for i, f := range broken.Fields {
		lines[i] = strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(f.Pointer, "/"), "/", " ") + " " + f.Message)
	}
	return strings.Join(lines, "\n  ")
}

// Noted returns a note behind a colon; none is empty.
func Noted(note string) string {
	if note == "" {
		return ""
	}
	return ": " + Line(note)
}

// Section writes a table with an empty line below it.
func (a *App) Section(head []string, rows [][]string) error {
	if err := Table(a.Out, head, rows); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// Table writes rows under a head, in columns.
func Table(w io.Writer, head []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			row[i] = Line(cmp.Or(cell, "-"))
		}
		if _, err := fmt.Fprintln(t, strings.Join(row, "\t")); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// Line is safe, cut to what fits into a line.
func Line(text string) string {
	const most = 100
	clean := Safe(text)
	if runes := []rune(clean); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return clean
}

// Safe makes a text fit for a terminal: what comes from outside must not move
// the cursor, colour the screen or reorder what is read.
func Safe(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return '·'
		}
		return r
	}, text)
}

// Local shows a time where the user is, to the second.
func Local(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// Quoted is a text as a shell takes it for one word.
func Quoted(text string) string {
	clean := Safe(text)
	if !strings.ContainsFunc(clean, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(":._-/", r))
	}) {
		return clean
	}
	return "'" + strings.ReplaceAll(clean, "'", `'\''`) + "'"
}

// Indented writes JSON over several lines, each fit for a terminal.
func Indented(raw json.RawMessage) string {
	text, err := json.MarshalIndent(raw, "", "  ")
	if err != nil {
		return Safe(string(raw))
	}
	lines := strings.Split(string(text), "\n")
	for i, one := range lines {
		lines[i] = Safe(one)
	}
	return strings.Join(lines, "\n")
}
