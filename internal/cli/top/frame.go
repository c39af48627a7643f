package top

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/text/width"

	"github.com/countersign-dev/countersign/internal/cli/command"
)

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

// line is a line of the screen.
type line []span

// text returns the line, cut to a width.
func (l line) text(across int, colour bool) string {
	var b strings.Builder
	for _, s := range l {
		text := cut(s.text, across)
		across -= columns(text)
		if colour && s.tone != tonePlain && strings.TrimSpace(text) != "" {
			text = "\x1b[" + string(s.tone) + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
	}
	return b.String()
}

// columns returns how many cells of a terminal the line takes.
func (l line) columns() (n int) {
	for _, s := range l {
		n += columns(s.text)
	}
	return n
}

// columns is how many cells of a terminal a text takes.
func columns(text string) (n int) {
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
