package command

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/visible"
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

// Done prints that a change was made, unless err is set.
func (a *App) Done(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	what := Line(fmt.Sprintf(format, args...))
	return a.Result(map[string]string{"done": what}, "%s\n", what)
}

// Print writes to standard output.
func (a *App) Print(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.Out, format, args...); err != nil {
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

// Export writes every item of a list, page by page, as one line of JSON each.
func Export[T any](a *App, page func(cursor string) (wire.Page[T], error)) error {
	written := 0
	for item, err := range client.Items(page) {
		if err == nil {
			err = a.WriteJSON(item)
		}
		if err != nil {
			return err
		}
		written++
	}
	a.Note("%d exported", written)
	return nil
}

// Noted returns a note behind a colon; none is empty.
func Noted(note string) string {
	if note == "" {
		return ""
	}
	return ": " + Line(note)
}

// Show returns a function that prints the result of a call: as JSON, or for
// people by text. An error is returned as it is.
func Show[T any](a *App, text func(*App, T) error) func(T, error) error {
	return func(v T, err error) error {
		switch {
		case err != nil:
			return err
		case a.JSON:
			return a.WriteJSON(v)
		}
		return text(a, v)
	}
}

// Progress prints the progress of a long command on standard error: with --json
// a document on a line of its own, else a text.
func (a *App) Progress(doc any, format string, args ...any) {
	if !a.JSON {
		a.Note(format, args...)
		return
	}
	encoder := json.NewEncoder(a.Err)
	encoder.SetEscapeHTML(false)
	// Who does not read it, does not miss it.
	_ = encoder.Encode(map[string]any{"progress": doc})
}

// Result writes a result: a document with --json, else a text.
func (a *App) Result(doc any, format string, args ...any) error {
	if a.JSON {
		return a.WriteJSON(doc)
	}
	return a.Print(format, args...)
}

// View is how a list of things is shown to people.
type View[T any] struct {
	// Empty is printed for an empty list.
	Empty string
	Head  []string
	Row   func(T) []string
	// Whole leaves the last column uncut.
	Whole bool
}

// Show returns a function that shows a list which a call returned: a table, or
// with --json one object a line.
func (v View[T]) Show(a *App) func([]T, error) error {
	return func(all []T, err error) error {
		switch {
		case err != nil:
			return err
		case a.JSON:
			return WriteJSONLines(a, all)
		case len(all) == 0 && v.Empty != "":
			a.Note("%s", v.Empty)
			return nil
		}
		rows := make([][]string, len(all))
		for i, one := range all {
			rows[i] = v.Row(one)
		}
		return a.table(v.Head, rows, v.Whole)
	}
}

// Table writes a list under a head, a row for each element.
func Table[T any](a *App, all []T, head []string, row func(T) []string) error {
	rows := make([][]string, len(all))
	for i, one := range all {
		rows[i] = row(one)
	}
	return a.Table(head, rows)
}

// ShowPage returns a function that shows a page of a list which a call
// returned: a table, or with --json one document.
func (v View[T]) ShowPage(a *App) func(wire.Page[T], error) error {
	return Show(a, func(a *App, page wire.Page[T]) error {
		err := v.Show(a)(page.Items, nil)
		if page.NextCursor != nil && err == nil {
			a.Note("For more results, add --cursor %s", *page.NextCursor)
		}
		return err
	})
}

// Table writes rows under a head, in columns.
func (a *App) Table(head []string, rows [][]string) error { return a.table(head, rows, false) }

// table is Table, with whole leaving the last column uncut.
func (a *App) table(head []string, rows [][]string, whole bool) error {
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			if row[i] = Line(cmp.Or(cell, "-")); whole && i == len(row)-1 {
				row[i] = Safe(cmp.Or(cell, "-"))
			}
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// Fields writes names and their values below each other, leaving out the
// empty ones. The arguments alternate.
func (a *App) Fields(pairs ...string) error {
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", pairs[i], Safe(pairs[i+1]))
		}
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// Line returns a text that is safe for a terminal and fits into a line.
func Line(text string) string {
	const most = 100
	clean := Safe(text)
	if runes := []rune(clean); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return clean
}

// Safe returns a text in one line, with escapes in place of the characters that
// do not show, reorder the text or control the terminal.
func Safe(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(visible.Text(text))
}

// Local shows a time in the local zone, to the second; nil is empty.
func Local(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// Quoted returns a text as one word of a shell.
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

// ErrNotConfirmed means that a person answered a question otherwise than yes.
var ErrNotConfirmed = errors.New("not confirmed")

// Interactive reports whether a person can be asked.
func (a *App) Interactive() bool {
	file, ok := a.In.(*os.File)
	return ok && !a.JSON && term.IsTerminal(int(file.Fd()))
}

// Confirm asks a person a question. Where nobody can be asked, the command is
// called wrongly: --yes takes the place of the answer.
func (a *App) Confirm(question string) error {
	if !a.Interactive() {
		return Misuse("nobody can be asked for confirmation: give --yes")
	}
	return a.Ask(question)
}

// Ask asks a question, and returns ErrNotConfirmed unless the answer is yes.
func (a *App) Ask(question string) error {
	fmt.Fprint(a.Err, question+" [y/N] ")
	answer, _ := bufio.NewReader(a.In).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return ErrNotConfirmed
}
