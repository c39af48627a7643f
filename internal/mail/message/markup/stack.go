package markup

import (
	"slices"

	"golang.org/x/net/html/atom"
)

// maxStack limits the tracked nesting of elements. A deeper element that hides
// its content hides that of the deepest tracked one.
const maxStack = 256

// element is an open element.
type element struct {
	kind  atom.Atom
	own   *declarations
	style style
	// mark and link are the numbers of its mark and its link, or -1.
	mark, link int
	linkFrom   int
	// quoted reports whether the lines inside begin with "> ".
	quoted bool
}

// identify returns the atom of a name. Unknown names get numbers that no atom
// has.
func identify(name []byte) atom.Atom {
	if a := atom.Lookup(name); a != 0 {
		return a
	}
	hash := uint32(2166136261)
	for _, c := range name {
		hash = (hash ^ uint32(c)) * 16777619
	}
	return atom.Atom(hash | 1<<31)
}

func void(kind atom.Atom) bool {
	switch kind {
	case atom.Area, atom.Base, atom.Basefont, atom.Bgsound, atom.Br, atom.Col, atom.Embed, atom.Frame, atom.Hr, atom.Img,
		atom.Input, atom.Keygen, atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr:
		return true
	}
	return false
}

// formatting reports whether an element continues after the end of the block in
// which it was opened.
func formatting(kind atom.Atom) bool {
	switch kind {
	case atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small, atom.Strike,
		atom.Strong, atom.Tt, atom.U:
		return true
	}
	return false
}

// scope reports whether end tags inside an element cannot close elements around
// it.
func scope(kind atom.Atom) bool {
	switch kind {
	case atom.Applet, atom.Caption, atom.Html, atom.Marquee, atom.Object, atom.Svg, atom.Table, atom.Td, atom.Template, atom.Th:
		return true
	}
	return false
}

// structural reports whether a table element contains no text directly.
func structural(kind atom.Atom) bool {
	switch kind {
	case atom.Table, atom.Tbody, atom.Tfoot, atom.Thead, atom.Tr:
		return true
	}
	return false
}

// special reports whether the end tags of unknown and inline elements do not
// close an element.
func special(kind atom.Atom) bool {
	switch kind {
	case atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Body, atom.Button, atom.Center, atom.Dd,
		atom.Details, atom.Dir, atom.Div, atom.Dl, atom.Dt, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer,
		atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Header, atom.Hgroup, atom.Li,
		atom.Listing, atom.Main, atom.Menu, atom.Nav, atom.Ol, atom.P, atom.Pre, atom.Section, atom.Select,
		atom.Summary, atom.Ul, atom.Script, atom.Style, atom.Textarea, atom.Title:
		return true
	}
	return scope(kind) || structural(kind)
}

func (w *walk) push(e element) {
	top := &w.stack[len(w.stack)-1]
	e.style = top.style.under(e.kind, e.own)
	if len(w.stack) >= maxStack {
		top.style = e.style
		return
	}
	w.stack = append(w.stack, e)
}

// imply closes the elements that a start tag closes implicitly.
func (w *walk) imply(kind atom.Atom) {
	switch kind {
	case atom.Li:
		w.closeUpTo(atom.Li, atom.Ul, atom.Ol, atom.Menu)
	case atom.Dd, atom.Dt:
		w.closeUpTo(atom.Dd, atom.Dl)
		w.closeUpTo(atom.Dt, atom.Dl)
	case atom.Td, atom.Th:
		w.closeUpTo(atom.Td, atom.Table, atom.Tr)
		w.closeUpTo(atom.Th, atom.Table, atom.Tr)
	case atom.Tr:
		w.closeUpTo(atom.Tr, atom.Table)
	case atom.Tbody, atom.Thead, atom.Tfoot:
		for _, open := range []atom.Atom{atom.Tbody, atom.Thead, atom.Tfoot} {
			w.closeUpTo(open, atom.Table)
		}
	case atom.Option:
		w.closeUpTo(atom.Option, atom.Select)
	case atom.A:
		w.closeUpTo(atom.A, atom.Table, atom.Td, atom.Th)
	}
	if special(kind) && kind != atom.Table && !structural(kind) && kind != atom.Td && kind != atom.Th {
		w.closeUpTo(atom.P, atom.Table, atom.Td, atom.Th, atom.Button, atom.Caption)
	}
}

// closeUpTo closes the innermost open element of a kind, unless one of the
// borders is inside it.
func (w *walk) closeUpTo(kind atom.Atom, borders ...atom.Atom) {
	for i := len(w.stack) - 1; i > 0; i-- {
		open := w.stack[i].kind
		if open == kind {
			w.remove(i, formatting(kind))
			return
		}
		if slices.Contains(borders, open) {
			return
		}
	}
}

// end handles an end tag.
func (w *walk) end(kind atom.Atom) {
	if kind == atom.Body || kind == atom.Html {
		return // the rest is still shown as part of the body
	}
	table := structural(kind) || kind == atom.Td || kind == atom.Th || kind == atom.Caption
	for i := len(w.stack) - 1; i > 0; i-- {
		open := w.stack[i].kind
		if open == kind {
			w.remove(i, formatting(kind))
			break
		}
		if table && (open == atom.Table || open == atom.Template) {
			break
		}
		if !table && scope(open) || !special(kind) && !formatting(kind) && special(open) {
			break
		}
	}
	if kind == atom.P {
		w.out.block(2)
	}
}

// remove closes the element at i and the elements inside it, except formatting
// ones; if formats is set, it keeps blocks inside open too.
func (w *walk) remove(i int, formats bool) {
	w.close(&w.stack[i])
	blocks, closes := false, scope(w.stack[i].kind)
	kept := w.stack[:i]
	for _, inside := range w.stack[i+1:] {
		blocks = blocks || formats && special(inside.kind)
		if !blocks && !formatting(inside.kind) || closes {
			w.close(&inside)
			continue
		}
		inside.style = kept[len(kept)-1].style.under(inside.kind, inside.own)
		kept = append(kept, inside)
	}
	w.stack = kept
}

// pop closes all elements from i on.
func (w *walk) pop(i int) {
	for j := len(w.stack) - 1; j >= i; j-- {
		w.close(&w.stack[j])
	}
	w.stack = w.stack[:i]
}

// close ends the layout, the mark and the link of an element.
func (w *walk) close(e *element) {
	w.out.close(e.kind)
	if e.quoted {
		w.out.quotes--
	}
	if e.link >= 0 {
		link := &w.result.Links[e.link]
		link.Text = w.out.since(e.linkFrom)
		if link.Text != "" {
			if domain := w.domain(link.URL); domain != "" {
				w.out.bracket(domain)
			}
		}
	}
	if e.mark >= 0 {
		w.out.endMark(e.mark)
	}
}
