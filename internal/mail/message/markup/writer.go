package markup

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/atom"
)

const maxQuotes = 10

// writer lays out text in lines. It writes breaks and spaces before the next
// text, so that there are none at the ends.
type writer struct {
	text []byte
	// lines counts the line ends in text. breaks and gap are pending until the
	// next text.
	lines, breaks int
	gap           bool
	item          string
	quotes        int
	lists         []int
	marks         []Mark
	// pending holds marks that begin at the next text.
	pending []int
}

// block requests line breaks before the next text.
func (o *writer) block(breaks int) {
	o.breaks = max(o.breaks, breaks)
	o.gap = false
}

// breakLine ends the line; a second call leaves an empty line.
func (o *writer) breakLine() {
	o.breaks = min(o.breaks+1, 2)
	o.gap = false
}

// open lays out the start of an element.
func (o *writer) open(kind atom.Atom) {
	switch kind {
	case atom.Blockquote:
		o.block(2)
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir:
		o.block(1)
		number := 0
		if kind == atom.Ol {
			number = 1
		}
		o.lists = append(o.lists, number)
	case atom.Li:
		o.block(1)
		o.item = "- "
		if n := len(o.lists) - 1; n >= 0 && o.lists[n] > 0 {
			o.item = strconv.Itoa(o.lists[n]) + ". "
			o.lists[n]++
		}
	case atom.Td, atom.Th:
		o.gap = true
	default:
		if breaks := breaksAround(kind); breaks > 0 {
			o.block(breaks)
		}
	}
}

// close lays out the end of an element.
func (o *writer) close(kind atom.Atom) {
	switch kind {
	case atom.Blockquote:
		o.block(2)
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir:
		if len(o.lists) > 0 {
			o.lists = o.lists[:len(o.lists)-1]
		}
		o.block(1)
	case atom.Td, atom.Th:
		o.gap = true
	case atom.Li:
		o.item = ""
		o.block(1)
	default:
		if breaks := breaksAround(kind); breaks > 0 {
			o.block(breaks)
		}
	}
}

// breaksAround returns the number of line ends around an element.
func breaksAround(kind atom.Atom) int {
	switch kind {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre, atom.Dl, atom.Fieldset, atom.Listing:
		return 2
	case atom.Address, atom.Article, atom.Aside, atom.Body, atom.Caption, atom.Center, atom.Dd, atom.Details, atom.Div,
		atom.Dt, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.Header, atom.Hgroup, atom.Li, atom.Main,
		atom.Nav, atom.Option, atom.Section, atom.Summary, atom.Table, atom.Tbody, atom.Tfoot, atom.Thead, atom.Tr:
		return 1
	}
	return 0
}

// space handles white space between elements.
func (o *writer) space(text []byte, preformatted bool) {
	if preformatted {
		for _, c := range text {
			if c == '\n' {
				o.breakLine()
			}
		}
	}
	o.gap = true
}

// begin writes the pending breaks, prefixes and spaces before text.
func (o *writer) begin() {
	if len(o.text) == 0 || o.breaks > 0 {
		if len(o.text) > 0 {
			o.newLine()
			if o.breaks > 1 {
				o.prefix()
				o.trim()
				o.newLine()
			}
		}
		o.prefix()
		o.text = append(o.text, o.item...)
	} else if last := o.text[len(o.text)-1]; o.gap && last != ' ' && last != '\n' {
		o.text = append(o.text, ' ')
	}
	o.breaks, o.gap, o.item = 0, false, ""
	for _, i := range o.pending {
		if o.marks[i].To == 0 {
			o.marks[i].From = o.lines
		}
	}
	o.pending = o.pending[:0]
}

func (o *writer) newLine() {
	o.text = append(o.text, '\n')
	o.lines++
}

func (o *writer) prefix() {
	for range min(o.quotes, maxQuotes) {
		o.text = append(o.text, '>', ' ')
	}
}

// trim removes the spaces at the end of the line.
func (o *writer) trim() {
	for len(o.text) > 0 && o.text[len(o.text)-1] == ' ' {
		o.text = o.text[:len(o.text)-1]
	}
}

// write writes a text that is not only white space.
func (o *writer) write(text []byte, preformatted bool) {
	begun := false
	for i := 0; i < len(text); {
		size := spaceAt(text[i:])
		if size > 0 {
			if preformatted && text[i] == '\n' {
				o.breakLine()
				begun = false
			}
			o.gap = true
			if preformatted && o.breaks > 0 {
				o.gap = false
			}
			i += size
			continue
		}
		if !begun || o.gap || o.breaks > 0 {
			o.begin()
			begun = true
		}
		from := i
		for i < len(text) && spaceAt(text[i:]) == 0 {
			i++
		}
		o.text = append(o.text, text[from:i]...)
	}
}

// spaceAt returns the length of the space at the beginning of a text, or 0. A
// no-break space counts as a space.
func spaceAt(text []byte) int {
	switch c := text[0]; {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
		return 1
	case c == 0xc2 && len(text) > 1 && text[1] == 0xa0:
		return 2
	}
	return 0
}

// bracket writes a domain in brackets after a link. Pending breaks stay
// pending.
func (o *writer) bracket(domain string) {
	o.text = append(append(append(o.text, " ["...), domain...), ']')
}

// introduced reports whether the text ends in a colon, as before a quotation.
func (o *writer) introduced() bool {
	return len(o.text) > 0 && o.text[len(o.text)-1] == ':'
}

func (o *writer) length() int { return len(o.text) }

// since returns the text from an offset, on one line.
func (o *writer) since(from int) string {
	const most = 1000
	text := o.text[min(from, len(o.text)):]
	text = text[:min(len(text), most)]
	for len(text) > 0 && !utf8.Valid(text) {
		text = text[:len(text)-1]
		if len(text) < most-utf8.UTFMax {
			break
		}
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// mark begins a mark at the next text.
func (o *writer) mark(kind MarkKind) int {
	o.block(1)
	o.marks = append(o.marks, Mark{Kind: kind, From: -1})
	o.pending = append(o.pending, len(o.marks)-1)
	return len(o.marks) - 1
}

func (o *writer) endMark(i int) {
	o.marks[i].To = o.lines + 1
	o.block(1)
}

// finish returns the text.
func (o *writer) finish() string { return strings.ToValidUTF8(string(o.text), "\uFFFD") }

// finishedMarks returns the marks that contain text.
func (o *writer) finishedMarks() []Mark {
	var marks []Mark
	for _, mark := range o.marks {
		if mark.From >= 0 {
			marks = append(marks, mark)
		}
	}
	return marks
}
