package headline_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/headline"
)

func TestOrdered(t *testing.T) {
	t.Parallel()
	schema := `{"properties":{"to":{},"items":{"items":{"properties":{"sku":{},"n":{}}}},"who":{"properties":{"name":{},"id":{}}}}}`
	for args, want := range map[string]string{
		`{"a":1,"items":[{"n":9007199254740993,"sku":"x"}],"to":"b","who":{"id":1,"name":"c"}}`: `{"to":"b","items":[{"sku":"x","n":9007199254740993}],"who":{"name":"c","id":1},"a":1}`,
		`{}`:       `{}`,
		`[2,1]`:    `[2,1]`,
		`{"to":`:   `{"to":`,
		`{"to":1}`: `{"to":1}`,
	} {
		if got := headline.Ordered(json.RawMessage(args), json.RawMessage(schema)); string(got) != want {
			t.Errorf("%s:\n got %s\nwant %s", args, got, want)
		}
	}
}

// Nested values are ordered by definitions that a schema refers to, and a reference that
// leads nowhere, outside or in a circle leaves them as they are.
func TestOrderedByReferences(t *testing.T) {
	t.Parallel()
	const person = `{"properties":{"name":{},"id":{},"boss":{"$ref":"#/$defs/person"}}}`
	for name, test := range map[string]struct{ schema, args, want string }{
		"definition": {`{"properties":{"who":{"$ref":"#/$defs/person"}},"$defs":{"person":` + person + `}}`,
			`{"who":{"boss":{"id":2,"name":"b"},"id":1,"name":"a"}}`, `{"who":{"name":"a","id":1,"boss":{"name":"b","id":2}}}`},
		"list of definitions": {`{"properties":{"all":{"items":{"$ref":"#/definitions/a~1b%20c"}}},"definitions":{"a/b c":` + person + `}}`,
			`{"all":[{"id":1,"name":"a"}]}`, `{"all":[{"name":"a","id":1}]}`},
		"list behind a reference": {`{"properties":{"all":{"$ref":"#/$defs/list"}},"$defs":{"list":{"items":` + person + `}}}`,
			`{"all":[{"id":1,"name":"a"}]}`, `{"all":[{"name":"a","id":1}]}`},
		"whole schema": {`{"$ref":"#/$defs/person","$defs":{"person":` + person + `}}`, `{"id":1,"name":"a"}`, `{"name":"a","id":1}`},
		"circle":       {`{"properties":{"who":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, `{"who":{"id":1,"name":"a"}}`, `{"who":{"id":1,"name":"a"}}`},
		"to itself":    {`{"$ref":"#"}`, `{"id":1,"name":"a"}`, `{"id":1,"name":"a"}`},
		"nowhere":      {`{"properties":{"who":{"$ref":"#/$defs/none"}}}`, `{"who":{"id":1}}`, `{"who":{"id":1}}`},
		"outside":      {`{"properties":{"who":{"$ref":"https://example.org/x"}}}`, `{"who":{"id":1}}`, `{"who":{"id":1}}`},
		"no text":      {`{"properties":{"who":{"$ref":7,"properties":{"b":{},"a":{}}}}}`, `{"who":{"a":1,"b":2}}`, `{"who":{"b":2,"a":1}}`},
	} {
		if got := headline.Ordered(json.RawMessage(test.args), json.RawMessage(test.schema)); string(got) != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
}
