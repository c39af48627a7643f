package top

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/text/width"

	"github.com/countersign-dev/countersign/internal/cli/command"
)

// frame is what a screen shows: lines that fit its width.
type frame struct {
	width  int
	colour bool
	lines  []string
}

// tone is how a text stands out.
type tone string

const (
	tonePlain tone = ""
	toneBold  tone = "1"
	toneGood  tone = "32"
	toneMild  tone = "33"
	toneAlarm tone = "31;1"
	toneFaint tone = "2"
)

// span is a piece of a line.
type span struct {
	text string
	tone tone
}

// add ends a line made of spans, cut to the width.
func (f *frame) add(spans ...span) {
	var b strings.Builder
	left := f.width
	for _, s := range spans {
		text := cut(s.text, left)
		left -= columns(text)
		if f.colour && s.tone != tonePlain && strings.TrimSpace(text) != "" {
			text = "\x1b[" + string(s.tone) + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
	}
	f.lines = append(f.lines, b.String())
}

// columns is how many cells of a terminal a text takes.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += cells(r)
	}
	return n
}

func cells(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cut makes a text fit into some cells, and fit for a terminal.
func cut(text string, most int) string {
	text = command.Safe(text)
	if columns(text) <= most {
		return text
	}
	left := most - 1
	var b strings.Builder
	for _, r := range text {
		if left -= cells(r); left < 0 {
			break
		}
		b.WriteRune(r)
	}
	if most > 0 {
		b.WriteRune('…')
	}
	return b.String()
}

// padded fills a text with blanks to some cells: before it if right is set.
func padded(text string, to int, right bool) string {
	text = cut(text, to)
	blanks := strings.Repeat(" ", to-columns(text))
	if right {
		return blanks + text
	}
	return text + blanks
}

// brief writes a length of time in at most six characters.
func brief(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	case d < 100*24*time.Hour:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}
