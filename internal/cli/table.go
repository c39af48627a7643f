package cli

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
)

// table writes rows under a head, in columns.
func table(w io.Writer, head []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			row[i] = line(cmp.Or(cell, "-"))
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

// line is safe, cut to what fits into a line.
func line(text string) string {
	const most = 100
	clean := safe(text)
	if runes := []rune(clean); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return clean
}

// safe makes a text fit for a terminal: what comes from outside must not move
// the cursor, colour the screen or reorder what is read.
func safe(text string) string {
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

// actionTable shows actions, one a line.
func actionTable(w io.Writer, actions []client.Action) error {
	rows := make([][]string, len(actions))
	for i, a := range actions {
		e := a.Envelope
		rows[i] = []string{
			e.ActionID.String(), toolName(e.Tool), string(a.Phase), string(e.Result.Status), strconv.Itoa(e.Result.Attempts),
			local(&e.Timestamps.CreatedAt), e.ExternalID,
		}
	}
	return table(w, []string{"ID", "TOOL", "PHASE", "STATUS", "TRIES", "PROPOSED", "EXTERNAL ID"}, rows)
}

func toolName(t envelope.Tool) string {
	if source := cmp.Or(t.Source, t.ComposioApp); source != "" {
		return source + ":" + t.Name
	}
	return t.Name
}

// local shows a time where the user is, to the second.
func local(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// ended says that a phase is an end without the effect.
func ended(p envelope.Phase) bool {
	switch p {
	case envelope.PhaseDenied, envelope.PhaseExpired, envelope.PhaseFailed:
		return true
	case envelope.PhasePending, envelope.PhaseApproved, envelope.PhaseExecuting, envelope.PhaseCompleted:
	}
	return false
}
