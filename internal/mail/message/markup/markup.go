// Package markup converts the HTML of a mail into its visible text. It follows
// the rules of browsers for nesting, and enough of CSS to detect hidden text,
// which is omitted and reported with the rule that hides it. It fetches nothing
// and runs no script.
package markup

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of the reported items; those beyond are only counted.
const (
	maxLinks       = 2000
	maxHidden      = 200
	maxHiddenBytes = 64 << 10
	maxURL         = 4 << 10
)

// Result is the result of reading HTML.
type Result struct {
	// Text is the visible text. A link is followed by the domain of its target
	// in brackets, and each line of a quotation begins with "> ".
	Text string
	// Raw is all text, hidden or not.
	Raw    string
	Links  []Link
	Hidden []Hidden
	// Removed counts the omitted texts by rule, in order of appearance.
	Removed []Removed
	Pixels  int
	Forms   int
	Marks   []Mark
}

// Link is a link or the target of a form; a form has no text.
type Link struct{ Text, URL string }

// Hidden is hidden text.
type Hidden struct{ Reason, Text string }

// Removed counts the texts that one rule omitted.
type Removed struct {
	Reason            string
	Count, Characters int
}

// Mark is a range of lines of Text, From to before To, that a mail program has
// marked.
type Mark struct {
	Kind     MarkKind
	From, To int
}

// MarkKind is the kind of marked lines.
type MarkKind string

// The kinds of marks.
const (
	// MarkQuote is the beginning of an earlier message.
	MarkQuote     MarkKind = "quote"
	MarkSignature MarkKind = "signature"
)

// walk is the state of one Read.
type walk struct {
	result Result
	out    writer
	raw    []byte
	stack  []element
	sheet  sheet
	inline map[string]*declarations
	base   string
	// domain returns the domain in brackets after a link.
	domain      func(url string) string
	hiddenBytes int
	// lastHidden reports whether the last text was hidden, so that the next
	// text hidden by the same rule continues it.
	lastHidden bool
}

// Read reads HTML. domain returns the registrable domain of a URL, or "".
func Read(source string, domain func(url string) string) Result {
	w := walk{domain: domain, inline: map[string]*declarations{}}
	w.out.text = make([]byte, 0, len(source)/4+64)
	w.sheet.read(source, &w)
	w.stack = append(w.stack, element{style: initialStyle(), mark: -1, link: -1})
	tokens := html.NewTokenizer(strings.NewReader(source))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			break
		}
		switch kind {
		case html.TextToken:
			w.text(tokens.Text())
		case html.StartTagToken, html.SelfClosingTagToken:
			w.start(tokens)
		case html.EndTagToken:
			name, _ := tokens.TagName()
			w.end(identify(name))
		case html.CommentToken:
			w.comment(tokens.Text())
		}
	}
	w.pop(1)
	w.result.Text = w.out.finish()
	w.result.Marks = w.out.finishedMarks()
	w.result.Raw = string(bytes.TrimSpace(w.raw))
	return w.result
}

// removed counts an omitted text.
func (w *walk) removed(reason string, text []byte) {
	for i := range w.result.Removed {
		if r := &w.result.Removed[i]; r.Reason == reason {
			r.Count++
			r.Characters += len(text)
			return
		}
	}
	w.result.Removed = append(w.result.Removed, Removed{Reason: reason, Count: 1, Characters: len(text)})
}

// hide reports a hidden text.
func (w *walk) hide(reason string, text []byte) {
	w.removed(reason, text)
	text = text[:min(len(text), maxHiddenBytes-w.hiddenBytes)]
	w.hiddenBytes += len(text)
	value := strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "")), " ")
	if value == "" {
		return
	}
	if last := len(w.result.Hidden) - 1; w.lastHidden && last >= 0 && w.result.Hidden[last].Reason == reason {
		w.result.Hidden[last].Text += " " + value
		return
	}
	w.lastHidden = true
	if len(w.result.Hidden) < maxHidden {
		w.result.Hidden = append(w.result.Hidden, Hidden{Reason: reason, Text: value})
	}
}

func (w *walk) comment(text []byte) {
	if bytes.HasPrefix(text, []byte("[if")) || bytes.HasPrefix(text, []byte("<![endif")) || len(bytes.TrimSpace(text)) == 0 {
		w.removed("conditional comment", text)
		return
	}
	w.hide("comment", text)
	w.appendRaw(text)
}

func (w *walk) appendRaw(text []byte) {
	w.raw = append(w.raw, text...)
	if n := len(text); n > 0 && text[n-1] != '\n' {
		w.raw = append(w.raw, ' ')
	}
}

// text handles a text token.
func (w *walk) text(text []byte) {
	top := &w.stack[len(w.stack)-1]
	if top.kind == atom.Style || top.kind == atom.Script {
		w.removed(top.kind.String(), text)
		return
	}
	if len(bytes.TrimSpace(text)) == 0 {
		w.out.space(text, top.style.preformatted)
		return
	}
	w.appendRaw(text)
	style := &top.style
	// Text between the cells of a table is shown before the table.
	for i := len(w.stack) - 1; i > 0 && structural(w.stack[i].kind); i-- {
		style = &w.stack[i-1].style
	}
	if reason := style.hides(); reason != "" {
		w.hide(reason, text)
		return
	}
	w.lastHidden = false
	w.out.write(text, style.preformatted)
}

// start handles a start tag.
func (w *walk) start(tokens *html.Tokenizer) {
	name, more := tokens.TagName()
	kind := identify(name)
	a := w.attributes(tokens, more, kind)
	switch kind {
	case atom.Br:
		w.out.breakLine()
		return
	case atom.Hr:
		w.out.block(1)
		return
	case atom.Img:
		w.image(&a)
		return
	case atom.Base:
		w.base = a.href
		return
	case atom.Form:
		w.result.Forms++
		w.link("", a.action)
	case atom.Area:
		w.link("", a.href)
	}
	if void(kind) {
		return
	}
	w.imply(kind)
	if len(w.stack) >= maxStack {
		w.push(element{kind: kind, own: a.declarations, mark: -1, link: -1})
		return
	}
	w.out.open(kind)
	e := element{kind: kind, own: a.declarations, mark: -1, link: -1}
	if kind == atom.A && a.href != "" {
		e.link = w.link("", a.href)
		e.linkFrom = w.out.length()
	}
	// A blockquote may be a mere indented paragraph; it needs a sign of a
	// quotation.
	if kind == atom.Blockquote && (a.cite || w.out.introduced()) {
		e.quoted = true
		w.out.quotes++
	}
	if a.mark != "" && len(w.result.Marks) < maxLinks {
		e.mark = w.out.mark(a.mark)
	}
	w.push(e)
}

// link adds a link and returns its number, or -1 beyond the limit.
func (w *walk) link(text, url string) int {
	url = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.TrimSpace(url))
	if url == "" || strings.HasPrefix(url, "#") {
		return -1
	}
	if len(w.result.Links) >= maxLinks {
		w.removed("links", nil)
		return -1
	}
	const data = "data:"
	if len(url) > len(data) && strings.EqualFold(url[:len(data)], data) {
		url, _, _ = strings.Cut(url, ",")
	}
	url = resolve(w.base, url)
	w.result.Links = append(w.result.Links, Link{Text: text, URL: strings.ToValidUTF8(url[:min(len(url), maxURL)], "")})
	return len(w.result.Links) - 1
}

// resolve resolves a relative URL against the base of the document.
func resolve(base, url string) string {
	if base == "" || strings.Contains(url, "://") || strings.HasPrefix(url, "mailto:") || len(base)+len(url) > maxURL {
		return url
	}
	return strings.TrimRight(base, "/") + "/" + strings.TrimLeft(url, "/")
}

// image counts tracking pixels. No other text of an image is ever visible.
func (w *walk) image(a *attributes) {
	if a.src == "" {
		return
	}
	own := a.declarations
	tiny := a.width >= 0 && a.width <= 1 || a.height >= 0 && a.height <= 1
	if own != nil {
		tiny = tiny || own.width.set && own.width.px <= 1 || own.height.set && own.height.px <= 1 || own.reason != ""
	}
	if tiny || w.stack[len(w.stack)-1].style.reason != "" || a.width < 0 && a.height < 0 && !a.alt && longToken(a.src) {
		w.result.Pixels++
	}
}

// longToken reports whether a URL ends in a long word without an extension,
// which only a program writes.
func longToken(url string) bool {
	const long = 32
	word, digits := 0, 0
	for i := len(url) - 1; i >= 0; i-- {
		switch c := url[i]; {
		case c >= '0' && c <= '9':
			digits++
			word++
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_' || c == '%':
			word++
		default:
			return word >= long && digits > 0
		}
	}
	return false
}
