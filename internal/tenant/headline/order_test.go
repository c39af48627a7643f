package headline_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/headline"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	order := headline.NewOrder(json.RawMessage(`{"properties":{"t":{},"list":{"items":{"properties":{"s":{},"n":{}}}},"who":{"properties":{"b":{},"a":{}}}}}`))
	for args, want := range map[string]string{
		`{"x":1,"list":[{"n":9007199254740993,"s":"y"}],"t":"z","who":{"a":1,"b":"c"}}`: "t z · s y · n 9007199254740993 · b c · a 1 · x 1",
		`{}`:      "no arguments",
		`[2,1]`:   "arguments 2, 1",
		`{"t":`:   "arguments: , and others",
		`{"t":1}`: "t 1",
	} {
		if got := headline.Of(json.RawMessage(args), order, nil); got != want {
			t.Errorf("%s:\n got %s\nwant %s", args, got, want)
		}
	}
}

// Nested values are ordered by definitions that a schema refers to, and a reference that
// leads nowhere, outside or in a circle leaves them as they are.
func TestOrderByReferences(t *testing.T) {
	t.Parallel()
	const (
		def  = `{"properties":{"q":{},"p":{},"deep":{"$ref":"#/$defs/d"}}}`
		args = `{"w":{"p":1,"q":"a"}}`
		kept = "p 1 · q a"
	)
	many := ""
	for i := range 1_000 {
		many += fmt.Sprintf(`"m%d":{},`, i)
	}
	for name, test := range map[string]struct{ schema, args, want string }{
		"definition": {`{"properties":{"w":{"$ref":"#/$defs/d"}},"$defs":{"d":` + def + `}}`,
			`{"w":{"deep":{"p":2,"q":"b"},"p":1,"q":"a"}}`, "w.q a · w.p 1 · deep.q b · deep.p 2"},
		"list of definitions": {`{"properties":{"w":{"items":{"$ref":"#/definitions/a~1b%20c"}}},"definitions":{"a/b c":` + def + `}}`,
			`{"w":[{"p":1,"q":"a"}]}`, "q a · p 1"},
		"list behind a reference": {`{"properties":{"w":{"$ref":"#/$defs/list"}},"$defs":{"list":{"items":` + def + `}}}`,
			`{"w":[{"p":1,"q":"a"}]}`, "q a · p 1"},
		"whole schema": {`{"$ref":"#/$defs/d","$defs":{"d":` + def + `}}`, `{"p":1,"q":"a"}`, "q a · p 1"},
		"a chain into what contains it": {`{"$ref":"#/$defs/d","$defs":{"d":{"properties":{"q":{},"w":{"$ref":"#/$defs/e"},"p":{}}},"e":{"$ref":"#/$defs/d"}}}`,
			`{"p":1,"w":{"p":2,"q":"b"},"q":"a"}`, "q a · w.q b · w.p 2 · p 1"},
		"behind 1,000 places": {`{"properties":{` + many + `"w":{"properties":{"q":{},"p":{}}}}}`, args, kept},
		"circle":              {`{"properties":{"w":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, args, kept},
		"to itself":           {`{"$ref":"#"}`, `{"p":1,"q":"a"}`, kept},
		"nowhere":             {`{"properties":{"w":{"$ref":"#/$defs/none"}}}`, args, kept},
		"outside":             {`{"properties":{"w":{"$ref":"https://example.org/x"}}}`, args, kept},
		"no text":             {`{"properties":{"w":{"$ref":7,"properties":{"q":{},"p":{}}}}}`, args, "q a · p 1"},
	} {
		if got := headline.Of(json.RawMessage(test.args), headline.NewOrder(json.RawMessage(test.schema)), nil); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}
