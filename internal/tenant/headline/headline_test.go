package headline_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/headline"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{}`: "no arguments",
		`{"body":"Dear Ana,\nsee you.","to":["ana@example.org","bob@example.org"],"subject":"Launch"}`: "to ana@example.org, bob@example.org · subject Launch · body “Dear Ana, see you.”",
		`{"amount":129.5,"currency":"EUR","charge":"ch_1","reason":"requested_by_customer"}`:           "amount 129.5 EUR · charge ch_1 · reason requested_by_customer",
		`{"destination":"a.md","source":"b.md"}`:                                                       "source b.md · destination a.md",
		`{"entityNames":["Alice","Bob"]}`:                                                              "entityNames Alice, Bob",
		`{"from":"Alice","relationType":"knows","to":"Bob"}`:                                           "from Alice · to Bob · relationType knows",
		`{"items":[{"sku":"a","price":"1"},{"sku":"b","price":"99999"}]}`:                              "price 1, 99999 · sku a, b",
		`{"note":"x · amount 5"}`:                                                                      "note “x · amount 5”",
		`{"note":"”· amount 5"}`:                                                                       "note “\"· amount 5”",
		"{\"note\":\"a\u202eb\"}":                                                                      "note “a\\u{202E}b”",
		`{"a":{"city":"Rome"},"b":{"city":"Bern"}}`:                                                    "a.city Rome · b.city Bern",
		`{"tags":[],"dry":true,"none":null}`:                                                           "tags (none) · dry true · none null",
		`{"to":{"ana@example.org":{},"bob@example.org":{"amount":5}}}`:                                 "to.ana@example.org (none) · to.bob@example.org.amount 5",
		`{"price":1,"cost":2,"a":{"currency":"EUR"},"b":{"currency":"JPY"}}`:                           "price 1 · cost 2 · a.currency EUR · b.currency JPY",
		`[1]`:       "arguments 1",
		`"hello"`:   "arguments hello",
		`{"a":1`:    "arguments: a, and others",
		`{"to":""}`: "to “”",
	} {
		if got := headline.Of(json.RawMessage(args), nil, nil); got != want {
			t.Errorf("%s:\n got %s\nwant %s", args, got, want)
		}
	}
}
