package evaluate

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// JSON writes the report as JSON.
func (r Report) JSON(to io.Writer) error {
	out := json.NewEncoder(to)
	out.SetIndent("", "  ")
	return out.Encode(r)
}

// Text writes the report as tables.
func (r Report) Text(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "cold model %.16s\n", r.Model)
	if r.Partial {
		b.WriteString("PARTIAL: not all was asked; the notes of the sections say what is missing\n")
	}
	for _, s := range r.Sections {
		s.text(&b)
	}
	for _, absent := range r.Absent {
		fmt.Fprintf(&b, "\nnot evaluated, because it is missing: %s\n", absent)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func (s Section) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s, %s, %d examples\n", s.Set, s.Mode, s.Examples)
	fmt.Fprintf(b, "  trained on: %s; tuned on: %s\n", s.Trained, s.Tuned)
	if s.Note != "" {
		fmt.Fprintf(b, "  (%s)\n", s.Note)
	}
	for _, f := range s.Figures {
		fmt.Fprintf(b, "  %-52s %s\n", f.Name, strings.TrimRight(f.text(), " "))
	}
}

func (f Figure) text() string {
	if f.Unit != "" {
		return fmt.Sprintf("%9.1f %s", f.Value, f.Unit)
	}
	out := fmt.Sprintf("%.3f", f.Value)
	if f.Of > 0 {
		out += fmt.Sprintf("  %.2f to %.2f of %4d", f.Low, f.High, f.Of)
	} else {
		out += strings.Repeat(" ", 22)
	}
	if f.Aim > 0 {
		reached := "reached"
		if f.Value < f.Aim {
			reached = fmt.Sprintf("%.3f short", f.Aim-f.Value)
		}
		out += fmt.Sprintf("  aim %.2f, %s", f.Aim, reached)
	}
	if f.Published > 0 {
		out += fmt.Sprintf("  published %.3f", f.Published)
	}
	return out
}
