package markup

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of style sheets; rules beyond them are omitted and counted.
const (
	maxRules      = 2000
	maxSheetBytes = 256 << 10
)

// property is one declaration of a rule.
type property struct {
	name, value string
	important   bool
}

// sheet holds the rules of all <style> elements with simple selectors: an
// element, a class, an id, or an element with a class or an id.
type sheet struct {
	rules map[string][]property
	count int
}

// read collects the rules of a document before the walk, since a rule also
// applies to elements before it.
func (s *sheet) read(source string, w *walk) {
	size := 0
	for i := 0; i < len(source); {
		next := strings.IndexByte(source[i:], '<')
		if next < 0 {
			return
		}
		i += next
		switch {
		case strings.HasPrefix(source[i:], "<!--"):
			end := strings.Index(source[i+4:], "-->")
			if end < 0 {
				return
			}
			i += 4 + end
		case len(source) > i+6 && strings.EqualFold(source[i:i+6], "<style"):
			open := strings.IndexByte(source[i:], '>')
			if open < 0 {
				return
			}
			text := source[i+open+1:]
			i += open + 1
			if end := strings.Index(text, "</"); end >= 0 {
				text = text[:end]
			}
			if size += len(text); size > maxSheetBytes {
				w.removed("style sheet", []byte(text))
				return
			}
			s.parse(strings.NewReplacer("<!--", "", "-->", "").Replace(withoutComments(text)), w)
			i += len(text)
		default:
			i++
		}
	}
}

func (s *sheet) parse(text string, w *walk) {
	for {
		selectors, rest, ok := strings.Cut(text, "{")
		if !ok {
			return
		}
		selectors = strings.TrimSpace(selectors)
		if i := strings.LastIndexAny(selectors, ";}"); i >= 0 {
			selectors = strings.TrimSpace(selectors[i+1:])
		}
		if strings.HasPrefix(selectors, "@") {
			body := nestedEnd(rest)
			w.removed("style rule", []byte(rest[:body]))
			text = rest[min(body+1, len(rest)):]
			continue
		}
		body, after, _ := strings.Cut(rest, "}")
		s.add(selectors, body, w)
		text = after
	}
}

// nestedEnd returns the end of a block with nested blocks.
func nestedEnd(text string) int {
	depth := 1
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

func (s *sheet) add(selectors, body string, w *walk) {
	var properties []property
	eachDeclaration(body, func(name, value string, important bool) {
		if matters(name) {
			properties = append(properties, property{name, value, important})
		}
	})
	if len(properties) == 0 {
		return
	}
	if s.rules == nil {
		s.rules = map[string][]property{}
	}
	for selector := range strings.SplitSeq(selectors, ",") {
		selector = strings.ToLower(strings.TrimSpace(selector))
		if s.count >= maxRules || selector == "" || strings.ContainsAny(selector, " >+~:[*\t\n\r\\") || strings.Count(selector, ".")+strings.Count(selector, "#") > 1 {
			w.removed("style rule", []byte(body))
			continue
		}
		s.count++
		s.rules[selector] = append(s.rules[selector], properties...)
	}
}

// matters reports whether a property can hide text.
func matters(name string) bool {
	switch name {
	case "display", "visibility", "opacity", "font-size", "font", "color", "background", "background-color",
		"background-image", "white-space", "width", "max-width", "height", "max-height", "overflow", "overflow-x",
		"overflow-y", "position", "left", "right", "top", "bottom", "text-indent", "margin-left", "margin-top",
		"margin-right", "margin", "clip", "clip-path", "mso-hide", "transform":
		return true
	}
	return false
}

// attributes holds the parsed attributes of a start tag.
type attributes struct {
	declarations      *declarations
	href, src, action string
	width, height     float32 // -1 without one
	alt, cite         bool
	mark              MarkKind
}

// attributes parses the attributes of a start tag and applies the rules for its
// element.
func (w *walk) attributes(tokens *html.Tokenizer, more bool, kind atom.Atom) attributes {
	a := attributes{width: -1, height: -1}
	if !more && w.sheet.rules == nil {
		return a
	}
	var own declarations
	var used bool
	var inline, class, id string
	for more {
		var key, value []byte
		key, value, more = tokens.TagAttr()
		switch string(key) {
		case "style":
			inline = string(value)
		case "class":
			class = strings.ToLower(string(value))
		case "id":
			id = strings.ToLower(string(value))
		default:
			used = a.set(&own, kind, key, value) || used
		}
	}
	if class != "" || id != "" {
		a.mark = markOf(class, id)
	}
	a.cite = a.cite || a.mark == MarkQuote || strings.Contains(inline, "border-left")
	if w.sheet.rules == nil && !used {
		a.declarations = w.inlineDeclarations(inline)
		return a
	}
	applied := w.sheet.apply(&own, kind, class, id, false)
	if inline != "" {
		used = true
		eachDeclaration(inline, func(name, value string, _ bool) { own.set(name, value) })
	}
	if applied {
		w.sheet.apply(&own, kind, class, id, true)
	}
	if used || applied {
		a.declarations = &own
	}
	return a
}

// inlineDeclarations returns the declarations of a style attribute. It caches
// them, since newsletters repeat the same ones hundreds of times.
func (w *walk) inlineDeclarations(text string) *declarations {
	if text == "" {
		return nil
	}
	if own, ok := w.inline[text]; ok {
		return own
	}
	own := &declarations{}
	eachDeclaration(text, func(name, value string, _ bool) { own.set(name, value) })
	w.inline[text] = own
	return own
}

// apply applies the rules for an element, from the least to the most specific,
// and reports whether there are any.
func (s *sheet) apply(own *declarations, kind atom.Atom, class, id string, important bool) bool {
	if s.rules == nil {
		return false
	}
	name, found := "", false
	if kind < 1<<31 {
		name = kind.String()
	}
	rule := func(selector string) {
		for _, p := range s.rules[selector] {
			found = true
			if p.important == important {
				own.set(p.name, p.value)
			}
		}
	}
	rule(name)
	const most = 10
	count := 0
	for each := range strings.FieldsSeq(class) {
		if count++; count > most {
			break
		}
		rule("." + each)
		rule(name + "." + each)
	}
	if id != "" {
		rule("#" + id)
		rule(name + "#" + id)
	}
	return found
}

// set handles an attribute and reports whether it is presentational.
func (a *attributes) set(own *declarations, kind atom.Atom, key, value []byte) bool {
	switch string(key) {
	case "href":
		a.href = string(value)
	case "src":
		a.src = string(value)
	case "action":
		a.action = string(value)
	case "alt":
		a.alt = len(bytes.TrimSpace(value)) > 0
	case "type", "cite":
		a.cite = a.cite || kind == atom.Blockquote
	case "data-signatureblock":
		a.mark = MarkSignature
	case "width":
		a.width = float32(number(strings.TrimSuffix(string(value), "px"), 1000))
	case "height":
		a.height = float32(number(strings.TrimSuffix(string(value), "px"), 1000))
	case "hidden":
		own.hidden("hidden", true)
		return true
	case "bgcolor":
		own.background = parseColor(string(value))
		return true
	case "background":
		own.unknownBackground = len(value) > 0
		return true
	case "text":
		if kind == atom.Body {
			own.color = parseColor(string(value))
			return true
		}
	case "color":
		own.color = parseColor(string(value))
		return true
	case "size":
		// The sizes of <font> are never too small to read.
		if kind == atom.Font {
			own.size = length{px: rootSize, set: true}
			return true
		}
	}
	return false
}

// markOf returns the mark of a class or an id that mail programs use.
func markOf(class, id string) MarkKind {
	switch id {
	case "divrplyfwdmsg", "olk_src_body_section", "appendonsend", "ymail_quoted", "replyforwardmessage":
		return MarkQuote
	case "signature", "applemailsignature", "ms-outlook-mobile-signature":
		return MarkSignature
	}
	for each := range strings.FieldsSeq(class) {
		switch each {
		case "gmail_quote", "yahoo_quoted", "moz-cite-prefix", "gmail_quote_container", "protonmail_quote", "zmail_extra":
			return MarkQuote
		case "gmail_signature", "moz-signature", "protonmail_signature_block":
			return MarkSignature
		}
	}
	return ""
}
