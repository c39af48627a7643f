package headline_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/tenant/headline"
)

func TestTemplates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ template, args, want string }{
		"complete":            {"Refund {/amount} {/currency} to {/customer/email}", `{"amount":5,"currency":"EUR","customer":{"email":"ana@example.org"},"why":"x"}`, "Refund 5 EUR to ana@example.org"},
		"a list":              {"Mail {/subject} to {/to}", `{"to":["a@example.org","b@example.org"],"subject":"Two words"}`, "Mail “Two words” to a@example.org, b@example.org"},
		"items":               {"Order {/items/*/sku} for {/items/*/price}", `{"items":[{"sku":"a","price":1},{"sku":"b","price":2}]}`, "Order a, b for 1, 2"},
		"one more recipient":  {"Mail {/subject} to {/to}", `{"to":["a@example.org"],"cc":"eve@example.org","subject":"S"}`, "to a@example.org · cc eve@example.org · subject S"},
		"an argument missing": {"Refund {/amount} {/currency}", `{"amount":5}`, "amount 5"},
		"a value with text":   {"Pay {/amount}", `{"amount":"5 to eve"}`, "Pay “5 to eve”"},
		"too long":            {"Mail to {/to}", `{"to":"` + strings.Repeat("a", 300) + `"}`, "arguments: to"},
	} {
		template, err := headline.ParseTemplate(test.template)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := template.Of(json.RawMessage(test.args), nil, nil); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
	}
	for _, text := range []string{"", "no argument", "{amount}", "a {/b} {", "a\n{/b}", "{/b}\u202e", strings.Repeat("x", 200) + "{/b}"} {
		if _, err := headline.ParseTemplate(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"subject":{"type":"string"},"to":{"type":"array","items":{"type":"string"}}}}`:                 "to {/to}",
		`{"type":"object","properties":{"currency":{"type":"string"},"amount":{"type":"integer"},"charge_id":{"type":"string"}}}`:      "amount {/amount} {/currency} · charge_id {/charge_id}",
		`{"type":"object","properties":{"destination":{"type":"string"},"source":{"type":"string"}}}`:                                  "source {/source} · destination {/destination}",
		`{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":{"price":{"type":"number"}}}}}}`: "price {/items/*/price}",
		`{"type":"object"}`: "",
		`true`:              "",
	} {
		if got := headline.Suggest(json.RawMessage(schema), nil); got != want {
			t.Errorf("%s:\n got %s\nwant %s", schema, got, want)
		}
	}
}

// Whatever the arguments and the template, the line contains every recipient whole, or
// the names of all arguments.
func TestNoRecipientIsLeftOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		to := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,30}@[a-z]{1,10}\.org`), 1, 12).Draw(t, "to")
		args, err := json.Marshal(map[string]any{"to": to, "subject": rapid.String().Draw(t, "subject"), rapid.String().Draw(t, "name"): rapid.String().Draw(t, "value")})
		if err != nil {
			t.Fatal(err)
		}
		template, err := headline.ParseTemplate(rapid.SampledFrom([]string{"Mail {/subject}", "Mail {/subject} to {/to}", "{/to}"}).Draw(t, "template"))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{headline.Of(args, nil, nil), template.Of(args, nil, nil)} {
			if strings.HasPrefix(line, "arguments: ") {
				continue
			}
			for _, address := range to {
				if !strings.Contains(line, address) {
					t.Fatalf("%s is left out: %s", address, line)
				}
			}
			if strings.ContainsAny(line, "\n\u202e") || len([]rune(line)) > headline.MaxLength {
				t.Fatalf("not one line: %q", line)
			}
		}
	})
}
