package markup

import (
	"golang.org/x/net/html/atom"
)

// Limits of visibility. Text is hidden at tinySize pixels or less, at tinyShare
// of the surrounding size or less, or at an opacity of faint or less.
const (
	tinySize  = 3
	tinyShare = 0.2
	faint     = 0.1
	faraway   = -500
	rootSize  = 16
)

// style is the computed style of the text of an element.
type style struct {
	color, background color
	size              float32
	opacity           float32
	// reason is the rule that hides the element with its content.
	reason string
	// invisible is set by visibility, which inner elements can reset.
	invisible, preformatted bool
}

func initialStyle() style {
	return style{color: color{a: 255, set: true}, background: color{255, 255, 255, 255, true}, size: rootSize, opacity: 1}
}

// length is a length in pixels or relative to the surrounding font size.
type length struct {
	px       float32
	relative bool
	set      bool
}

// declarations holds the effect of the attributes and rules on one element.
type declarations struct {
	color, background    color
	size                 length
	width, height        length
	opacity              float32 // 0 is unset; otherwise the opacity plus 1
	visibility           int8    // 1 visible, -1 not
	preformatted         int8
	overflow, positioned bool
	outside              bool // moved out of view, if it is positioned
	shown                bool // display has a visible value
	reason               string
	unknownBackground    bool
}

// under returns the style of an element inside one with style s.
func (s style) under(kind atom.Atom, own *declarations) style {
	switch kind {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Object, atom.Svg, atom.Title, atom.Iframe,
		atom.Noembed, atom.Noframes, atom.Applet:
		if s.reason == "" {
			s.reason = kind.String()
		}
	case atom.Pre, atom.Listing, atom.Textarea, atom.Xmp, atom.Plaintext:
		s.preformatted = true
	case atom.A:
		if own != nil && own.color.set {
			break
		}
		if s.color.set && s.background.set && !near(color{0, 0, 238, 255, true}, s.background) {
			s.color = color{0, 0, 238, 255, true}
		}
	}
	if own == nil {
		return s
	}
	if own.preformatted != 0 {
		s.preformatted = own.preformatted > 0
	}
	if own.visibility != 0 {
		s.invisible = own.visibility < 0
	}
	if own.opacity > 0 {
		s.opacity *= own.opacity - 1
	}
	if own.size.set {
		s.size = own.size.in(s.size)
	}
	if own.unknownBackground {
		s.background.set = false
	} else if own.background.set {
		s.background = own.background.over(s.background)
	}
	if own.color.set {
		s.color = own.color
	}
	if s.reason == "" {
		s.reason = own.hides()
	}
	return s
}

func (l length) in(around float32) float32 {
	if l.relative {
		return l.px * around
	}
	return l.px
}

// hides returns the rule by which declarations hide an element with its
// content, or "".
func (d *declarations) hides() string {
	switch {
	case d.reason != "":
		return d.reason
	case d.overflow && (d.width.small() || d.height.small()):
		return "size"
	case d.positioned && d.outside:
		return "position"
	}
	return ""
}

func (l length) small() bool { return l.set && !l.relative && l.px <= 1 }

// hides returns the rule that hides text of this style, or "".
func (s *style) hides() string {
	switch {
	case s.reason != "":
		return s.reason
	case s.invisible:
		return "visibility"
	case s.opacity < faint:
		return "opacity"
	case s.size <= tinySize:
		return "font-size"
	case s.color.set && s.color.a < invisibleAlpha:
		return "color"
	case s.color.set && s.background.set && near(s.color.over(s.background), s.background):
		return "color"
	}
	return ""
}
