package markup

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// eachDeclaration calls visit with every property and value of a list, in lower
// case and with escapes decoded. A semicolon in parentheses or quotes is part
// of the value.
func eachDeclaration(text string, visit func(property, value string, important bool)) {
	text = unescape(withoutComments(text))
	for text != "" {
		end := valueEnd(text)
		property, value, ok := strings.Cut(text[:end], ":")
		if text = text[min(end+1, len(text)):]; !ok {
			continue
		}
		value = strings.ToLower(strings.TrimSpace(value))
		value, important := strings.CutSuffix(value, "!important")
		visit(strings.ToLower(strings.TrimSpace(property)), strings.TrimSpace(value), important)
	}
}

func valueEnd(text string) int {
	parentheses, quote := 0, byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '(':
			parentheses++
		case c == ')':
			parentheses--
		case c == ';' && parentheses <= 0:
			return i
		}
	}
	if quote != 0 || parentheses > 0 {
		// An unclosed quote must not hide the rest.
		if i := strings.IndexByte(text, ';'); i >= 0 {
			return i
		}
	}
	return len(text)
}

func withoutComments(text string) string {
	if !strings.Contains(text, "/*") {
		return text
	}
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, "/*")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		_, text, _ = strings.Cut(after, "*/")
	}
}

// unescape decodes the escapes of CSS, which can spell the name of a property
// in many ways.
func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		n := i + 1
		for n < len(text) && n < i+7 && strings.IndexByte("0123456789abcdefABCDEF", text[n]) >= 0 {
			n++
		}
		if n == i+1 {
			continue
		}
		code, _ := strconv.ParseUint(text[i+1:n], 16, 32)
		if code > 0 && code <= utf8.MaxRune {
			b.WriteRune(rune(code))
		}
		i = n - 1
		if n < len(text) && text[n] == ' ' {
			i = n
		}
	}
	return b.String()
}

// set applies one declaration.
func (d *declarations) set(property, value string) {
	switch property {
	case "display":
		d.hidden("display:none", value == "none")
		d.shown = value != "none"
	case "visibility":
		d.visibility = 1
		if value == "hidden" || value == "collapse" {
			d.visibility = -1
		}
	case "opacity":
		d.opacity = float32(min(1, max(0, number(value, 1)))) + 1
	case "font-size":
		d.size = parseSize(value)
	case "font":
		for word := range strings.FieldsSeq(value) {
			size, _, _ := strings.Cut(word, "/")
			if l := parseSize(size); l.set && size != "0" {
				d.size = l
				break
			}
		}
	case "color":
		if c := parseColor(value); c.set {
			d.color = c
		}
	case "background", "background-color", "background-image":
		d.setBackground(property, value)
	case "white-space":
		d.preformatted = -1
		if strings.HasPrefix(value, "pre") {
			d.preformatted = 1
		}
	default:
		d.setBox(property, value)
	}
}

// setBox applies a declaration about position, size or overflow.
func (d *declarations) setBox(property, value string) {
	switch property {
	case "width", "max-width":
		d.width = parseLength(value)
	case "height", "max-height":
		d.height = parseLength(value)
	case "overflow", "overflow-x", "overflow-y":
		d.overflow = value == "hidden" || value == "clip"
	case "position":
		d.positioned = value == "absolute" || value == "fixed"
	case "left", "right", "top", "bottom":
		d.outside = d.outside || farAway(value)
	case "text-indent", "margin-left", "margin-top", "margin-right", "margin":
		for word := range strings.FieldsSeq(value) {
			d.hidden("indent", farAway(word))
		}
	case "clip":
		compact := strings.NewReplacer(" ", "", ",", "", "px", "").Replace(value)
		d.hidden("clip", strings.HasPrefix(compact, "rect(0000") || strings.HasPrefix(compact, "rect(1111"))
	case "clip-path":
		compact := strings.ReplaceAll(value, " ", "")
		d.hidden("clip", strings.HasPrefix(compact, "inset(50%") || strings.HasPrefix(compact, "inset(100%") ||
			strings.HasPrefix(compact, "circle(0") || strings.HasPrefix(compact, "polygon(00"))
	case "mso-hide":
		d.hidden("mso-hide", value == "all")
	case "transform":
		compact := strings.ReplaceAll(value, " ", "")
		d.hidden("transform", strings.Contains(compact, "scale(0)") || strings.Contains(compact, "scale(0,0)"))
	}
}

// hidden sets or clears the rule that hides an element; display can clear only
// its own.
func (d *declarations) hidden(reason string, holds bool) {
	if holds {
		d.reason = reason
	} else if d.reason == reason && reason == "display:none" {
		d.reason = ""
	}
}

// setBackground applies a background. Text on an image counts as visible.
func (d *declarations) setBackground(property, value string) {
	if strings.Contains(value, "url(") || strings.Contains(value, "gradient(") {
		d.unknownBackground = true
		return
	}
	if property == "background-image" {
		return
	}
	if c := parseColor(value); c.set {
		d.background = c
		return
	}
	for word := range strings.FieldsSeq(value) {
		if c := parseColor(word); c.set {
			d.background = c
			return
		}
	}
}

func farAway(value string) bool {
	l := parseLength(value)
	if l.relative {
		l.px *= rootSize
	}
	return l.set && l.px <= faraway
}

// parseSize parses a font size.
func parseSize(value string) length {
	switch value {
	case "xx-small", "x-small", "small", "medium", "large", "x-large", "xx-large":
		return length{px: rootSize, set: true}
	case "smaller", "larger", "inherit":
		return length{px: 1, relative: true, set: true}
	}
	l := parseLength(value)
	if l.relative && l.px <= tinyShare {
		l = length{set: true}
	}
	return l
}

// parseLength parses a length. Percentages become relative.
func parseLength(value string) length {
	end := 0
	for end < len(value) && (value[end] >= '0' && value[end] <= '9' || value[end] == '.' || value[end] == '-' || value[end] == '+') {
		end++
	}
	amount, err := strconv.ParseFloat(value[:end], 32)
	if err != nil {
		return length{}
	}
	l := length{px: float32(amount), set: true}
	switch strings.TrimSpace(value[end:]) {
	case "", "px":
	case "pt":
		l.px *= 4.0 / 3
	case "pc":
		l.px *= 16
	case "in":
		l.px *= 96
	case "cm":
		l.px *= 37.8
	case "mm":
		l.px *= 3.78
	case "rem":
		l.px *= rootSize
	case "em":
		l.relative = true
	case "ex", "ch":
		l.relative, l.px = true, l.px/2
	case "%", "vw", "vh":
		l.relative, l.px = true, l.px/100
	default:
		return length{}
	}
	return l
}
