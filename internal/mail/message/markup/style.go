package markup

import (
	"golang.org/x/net/html/atom"
)

// What is not seen: text of at most tinySize pixels, of at most tinyShare of the
// size around it, or with at most faint of the opacity.
const (
	tinySize  = 3
	tinyShare = 0.2
	faint     = 0.1
	faraway   = -500
	rootSize  = 16
)

// style is what holds for the text of an element, after inheritance.
type style struct {
	color, background color
	size              float32
	opacity           float32
	// reason is the rule that hides the element with all that is inside.
	reason string
	// invisible is set by visibility, which elements inside can set back.
	invisible, preformatted bool
}

func initialStyle() style {
	return style{color: color{a: 255, set: true}, background: color{255, 255, 255, 255, true}, size: rootSize, opacity: 1}
}

// length is a length in pixels or in the size of the font around it.
type length struct {
	px       float32
	relative bool
	set      bool
}

// declarations are what attributes and rules say of one element.
type declarations struct {
	color, background    color
	size                 length
	width, height        length
	opacity              float32 // 0 is unset; 1 is added
	visibility           int8    // 1 visible, -1 not
	preformatted         int8
	overflow, positioned bool
	outside              bool // moved out of view, where it is positioned
	shown                bool // display is set to something that shows
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

// hides returns the rule by which declarations hide an element whatever is
// inside.
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

// hides returns the rule by which text of this style does not show, or nothing.
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
