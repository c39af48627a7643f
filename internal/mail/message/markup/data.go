package markup

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// Limits of structured data. A script beyond them is left out, and further items of
// microdata are.
const (
	maxDataBytes = 256 << 10 // of all scripts
	maxDataDepth = 16
	maxDataNodes = 2000
	maxDataText  = 1000
)

// Format is the notation of structured data.
type Format string

// The formats.
const (
	JSONLD    Format = "json_ld"
	Microdata Format = "microdata"
)

// Item is an item of structured data, such as a reservation of schema.org. Programs
// read it, and no person sees it.
type Item struct {
	Format Format
	// Types are the last parts of its types, such as LodgingReservation.
	Types []string
	Props []Prop
}

// Prop is a property of an item: a text, or another item.
type Prop struct {
	Name, Text string
	Item       *Item
}

// Is reports whether an item has one of the types.
func (i *Item) Is(types ...string) bool {
	return slices.ContainsFunc(types, func(t string) bool { return slices.Contains(i.Types, t) })
}

// Item returns the first item with a name, or an empty one.
func (i *Item) Item(name string) *Item {
	for _, p := range i.Props {
		if p.Name == name && p.Item != nil {
			return p.Item
		}
	}
	return &Item{}
}

// Text returns the first text with one of the names, or "".
func (i *Item) Text(names ...string) string {
	for _, name := range names {
		for _, p := range i.Props {
			if p.Name == name && p.Text != "" {
				return p.Text
			}
		}
	}
	return ""
}

// Data returns the items of structured data in HTML, without those in other items.
func Data(source string) []Item {
	if !strings.Contains(source, "ld+json") && !strings.Contains(source, "itemscope") {
		return nil
	}
	d := data{}
	tokens := html.NewTokenizer(strings.NewReader(source))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			d.close(0)
			return d.items
		case html.TextToken:
			d.text(tokens.Text())
		case html.StartTagToken:
			d.start(tokens, false)
		case html.SelfClosingTagToken:
			d.start(tokens, true)
		case html.EndTagToken:
			name, _ := tokens.TagName()
			d.end(string(name))
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

// data is the state of Data.
type data struct {
	items        []Item
	nodes, bytes int
	script       bool
	open         []dataElement
}

// dataElement is an open element, with the item or the property that it is.
type dataElement struct {
	name string
	item *Item
	prop string
	text []byte
}

// start handles a start tag.
func (d *data) start(tokens *html.Tokenizer, closed bool) {
	raw, more := tokens.TagName()
	name := string(raw)
	var of struct{ kind, prop, itemtype, value string }
	scoped, valued := false, false
	for more {
		var key, value []byte
		key, value, more = tokens.TagAttr()
		switch string(key) {
		case "type":
			of.kind = strings.ToLower(strings.TrimSpace(string(value)))
		case "itemprop":
			of.prop = string(value)
		case "itemtype":
			of.itemtype = string(value)
		case "itemscope":
			scoped = true
		case "content", "datetime":
			of.value, valued = string(value), true
		case "href", "src":
			if !valued {
				of.value = string(value)
			}
		}
	}
	if name == "script" {
		d.script = of.kind == "application/ld+json"
		return
	}
	empty := closed || name == "meta" || name == "link" || name == "img" || name == "br" || name == "input" || name == "hr"
	s := dataElement{name: name}
	switch {
	case scoped && d.count():
		s.item = &Item{Format: Microdata, Types: types(of.itemtype)}
		if parent := d.item(); parent != nil && of.prop != "" {
			parent.Props = append(parent.Props, Prop{Name: clip(of.prop), Item: s.item})
			s.prop = "" // the item is the value
		}
	case of.prop != "" && d.item() != nil && d.count():
		if of.value != "" || empty {
			d.item().Props = append(d.item().Props, Prop{Name: clip(of.prop), Text: clip(of.value)})
		} else {
			s.prop = of.prop
		}
	}
	if !empty && len(d.open) < maxStack {
		d.open = append(d.open, s)
	}
}

// count reports whether one more node is within the limit.
func (d *data) count() bool {
	d.nodes++
	return d.nodes <= maxDataNodes
}

// item returns the innermost open item, or nil.
func (d *data) item() *Item {
	for i := len(d.open) - 1; i >= 0; i-- {
		if d.open[i].item != nil {
			return d.open[i].item
		}
	}
	return nil
}

// text handles a text: a script, or the text of the innermost open property.
func (d *data) text(text []byte) {
	if d.script {
		d.script = false
		d.read(text)
		return
	}
	for i := len(d.open) - 1; i >= 0 && d.open[i].item == nil; i-- {
		if s := &d.open[i]; s.prop != "" && len(s.text) < maxDataText {
			s.text = append(s.text, text...)
			return
		}
	}
}

// end closes the innermost element with a name, and all in it.
func (d *data) end(name string) {
	for i := len(d.open) - 1; i >= max(0, len(d.open)-maxDataDepth*4); i-- {
		if d.open[i].name == name {
			d.close(i)
			return
		}
	}
}

// close closes the elements from a number on.
func (d *data) close(from int) {
	for i := len(d.open) - 1; i >= from; i-- {
		s := d.open[i]
		d.open = d.open[:i]
		parent := d.item()
		switch {
		case s.prop != "" && parent != nil:
			parent.Props = append(parent.Props, Prop{Name: clip(s.prop), Text: clip(string(s.text))})
		case s.item != nil && !contained(parent, s.item):
			d.items = append(d.items, *s.item)
		}
	}
}

// contained reports whether an item is a property of another.
func contained(parent, item *Item) bool {
	return parent != nil && slices.ContainsFunc(parent.Props, func(p Prop) bool { return p.Item == item })
}

// read reads a script of JSON-LD. An invalid or too deep one is left out.
func (d *data) read(text []byte) {
	if d.bytes += len(text); d.bytes > maxDataBytes {
		return
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	value, err := d.value(decoder, 0)
	if err != nil {
		return
	}
	d.top(value)
}

// top adds the items of a value of JSON-LD: one, a list, or a graph.
func (d *data) top(value []Prop) {
	for _, p := range value {
		if p.Item == nil {
			continue
		}
		if len(p.Item.Types) > 0 {
			d.items = append(d.items, *p.Item)
		}
		var graph []Prop
		for _, inner := range p.Item.Props {
			if inner.Name == "@graph" {
				graph = append(graph, inner)
			}
		}
		d.top(graph)
	}
}

var errData = errors.New("too deep or too large")

// value reads a value: texts and items without names. A list is all of its values.
func (d *data) value(decoder *json.Decoder, depth int) ([]Prop, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDataDepth || !d.count() {
		return nil, errData
	}
	switch token := token.(type) {
	case json.Delim:
		if token == '[' {
			var all []Prop
			for decoder.More() {
				one, err := d.value(decoder, depth+1)
				if err != nil {
					return nil, err
				}
				all = append(all, one...)
			}
			_, err := decoder.Token()
			return all, err
		}
		return d.object(decoder, depth)
	case string:
		return []Prop{{Text: clip(token)}}, nil
	case json.Number:
		return []Prop{{Text: clip(token.String())}}, nil
	}
	return nil, nil // true, false and null
}

func (d *data) object(decoder *json.Decoder, depth int) ([]Prop, error) {
	item := &Item{Format: JSONLD}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		values, err := d.value(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if key == "@type" {
				item.Types = append(item.Types, types(v.Text)...)
				continue
			}
			v.Name, _ = key.(string)
			v.Name = clip(v.Name)
			item.Props = append(item.Props, v)
		}
	}
	_, err := decoder.Token()
	return []Prop{{Item: item}}, err
}

// types returns the last parts of types.
func types(text string) (all []string) {
	for _, t := range strings.Fields(text) {
		all = append(all, clip(t[strings.LastIndexAny(t, "/#:")+1:]))
	}
	return all
}

// clip returns the beginning of a text on one line.
func clip(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) <= maxDataText {
		return text
	}
	text = text[:maxDataText]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}
