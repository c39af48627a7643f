package jsonref_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/jsonref"
)

func workflow() jsonref.Scope {
	return jsonref.Scope{Roots: []jsonref.Root{jsonref.Steps}, LooseText: true}
}

func reversal() jsonref.Scope {
	return jsonref.Scope{Roots: []jsonref.Root{jsonref.Inputs, jsonref.Outputs}}
}

func rule() jsonref.Scope {
	return jsonref.Scope{Roots: []jsonref.Root{jsonref.Key, jsonref.Inputs}}
}

func TestParse(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		scope jsonref.Scope
		want  map[string]string
	}{
		"a workflow's inputs": {workflow(), map[string]string{
			"$steps.0":                    "ref $steps.0",
			"$steps.0/id":                 "ref $steps.0/id",
			"$steps.12/hits/0/a~1b~0c":    "ref $steps.12/hits/0/a~1b~0c",
			"$steps.0/":                   "ref $steps.0/",
			"$0.id":                       "ref $steps.0/id",
			"$12[3].a[0]":                 "ref $steps.12/3/a/0",
			`$0["a.b"]["x"]`:              "ref $steps.0/a.b/x",
			`$0["a/b"]`:                   "ref $steps.0/a~1b",
			`$0[""]`:                      "ref $steps.0/",
			"$0.ä ö":                      "ref $steps.0/ä ö",
			"$0.00":                       "ref $steps.0/00",
			"$99999999999999999.a":        "ref $steps.99999999999999999/a",
			"plain":                       "text plain",
			"":                            "text ",
			"$":                           "text $",
			"$x.y":                        "text $x.y",
			"$0":                          "text $0",
			"$100":                        "text $100",
			"$5 each":                     "text $5 each",
			"$$0.id":                      "text $0.id",
			"$$steps.0/id":                "text $steps.0/id",
			"$$$":                         "text $$",
			"a $0.id":                     "text a $0.id",
			"$steps":                      "text $steps",
			"$stepsx":                     "text $stepsx",
			"$inputs/a":                   "text $inputs/a",
			"$steps/0":                    "invalid",
			"$steps.":                     "invalid",
			"$steps.x":                    "invalid",
			"$steps.0.id":                 "invalid",
			"$steps.0/~2":                 "invalid",
			"$0.":                         "invalid",
			"$0..a":                       "invalid",
			"$0.a.":                       "invalid",
			"$0.a]":                       "invalid",
			"$0[":                         "invalid",
			"$0[01]":                      "invalid",
			"$0[-1]":                      "invalid",
			"$0[a]":                       "invalid",
			`$0["a]`:                      "invalid",
			`$0["a"`:                      "invalid",
			`$0["a"]b`:                    "invalid",
			"$999999999999999999999999.a": "invalid",
		}},
		"a reversal's arguments": {reversal(), map[string]string{
			"$inputs":        "ref $inputs",
			"$inputs/to/0":   "ref $inputs/to/0",
			"$outputs/a.b":   "ref $outputs/a.b",
			"$$inputs":       "text $inputs",
			"plain":          "text plain",
			"$5":             "invalid",
			"$input":         "invalid",
			"$inputsx":       "invalid",
			"$inputs.to":     "invalid",
			"$outputs/~":     "invalid",
			"$.outputs.id":   "invalid",
			"$key":           "invalid",
			"$steps.0/id":    "invalid",
			"$0.id":          "invalid",
			"about $inputs/": "text about $inputs/",
		}},
		"a rule's arguments": {rule(), map[string]string{
			"$key":       "ref $key",
			"$inputs/to": "ref $inputs/to",
			"$key/a":     "invalid",
			"$keys":      "invalid",
			"$outputs":   "invalid",
			"$args/to":   "invalid",
		}},
	} {
		for text, want := range test.want {
			ref, literal, err := test.scope.Parse(text)
			got := "text " + literal
			if err != nil {
				got = "invalid"
			} else if ref != nil {
				got = "ref " + ref.String()
			}
			if got != want {
				t.Errorf("%s: Parse(%q) = %s, want %s", name, text, got, want)
			}
		}
	}
}

func TestFill(t *testing.T) {
	t.Parallel()

	values := map[jsonref.Root]string{
		jsonref.Inputs:  `{"to":["ada","bob"],"big":12345678901234567890,"none":null,"deep":{"x/y":[[1]]}}`,
		jsonref.Outputs: `{"id":"m-1","ok":true}`,
	}
	errMissing := errors.New("missing")
	for template, want := range map[string]string{
		`{"id":"$outputs/id"}`:                        `{"id":"m-1"}`,
		`{"n":"$inputs/big"}`:                         `{"n":12345678901234567890}`,
		`{"x":"$inputs/none"}`:                        `{"x":null}`,
		`{"x":"$inputs/to/1"}`:                        `{"x":"bob"}`,
		`{"x":["$inputs/to",{"y":"$outputs"}],"z":2}`: `{"x":[["ada","bob"],{"y":{"id":"m-1","ok":true}}],"z":2}`,
		`{"x":"$inputs/deep/x~1y/0/0"}`:               `{"x":1}`,
		`{"x":"$$inputs/to","y":"about $inputs/to"}`:  `{"x":"$inputs/to","y":"about $inputs/to"}`,
		`{"x":"$inputs/gone"}`:                        "missing",
		`{"x":"$inputs/to/2"}`:                        "missing",
		`{"x":"$inputs/to/01"}`:                       "missing",
		`{"x":"$inputs/to/-1"}`:                       "missing",
		`{"x":"$inputs/to/length"}`:                   "missing",
		`{"x":"$outputs/ok/x"}`:                       "missing",
		`{"x":"$inputs/none/x"}`:                      "missing",
		`{"$inputs/to":1}`:                            `{"$inputs/to":1}`,
	} {
		doc, err := jsonref.Decode(json.RawMessage(template))
		if err != nil {
			t.Fatal(err)
		}
		filled, err := reversal().Fill("", doc, func(_ string, ref jsonref.Ref, invalid error) (any, error) {
			value, decodeErr := jsonref.Decode(json.RawMessage(values[ref.Root]))
			if err := errors.Join(invalid, decodeErr); err != nil {
				return nil, err
			}
			found, ok := ref.Path.Find(value)
			if !ok {
				return nil, errMissing
			}
			return found, nil
		})
		got := "missing"
		if err == nil {
			text, err := json.Marshal(filled)
			if err != nil {
				t.Fatal(err)
			}
			got = string(text)
		} else if !errors.Is(err, errMissing) {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("Fill(%s) = %s, want %s", template, got, want)
		}
	}
}

func TestCheckReportsEveryInvalidReferenceByItsPointer(t *testing.T) {
	t.Parallel()

	doc, err := jsonref.Decode(json.RawMessage(`{"a":"$x","b":["ok",{"c/d":"$inputs/~"}],"e":"$inputs/to","f":"$$x"}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	reversal().Check("/args", doc, func(at string, _ error) { got = append(got, at) })
	slices.Sort(got)

	if diff := cmp.Diff([]string{"/args/a", "/args/b/1/c~1d"}, got); diff != "" {
		t.Errorf("Check differs (-want +got):\n%s", diff)
	}
}

func TestDecodeObject(t *testing.T) {
	t.Parallel()

	for raw, want := range map[string]bool{"": true, "{}": true, `{"a":1}`: true, "[]": false, "null": false, "{} {}": false, "{": false} {
		if _, err := jsonref.DecodeObject(json.RawMessage(raw)); (err == nil) != want {
			t.Errorf("DecodeObject(%q) = %v", raw, err)
		}
	}
}

// FuzzParse checks that references and pointers survive a round trip.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"$0.id", `$1["a.b"][3]`, "$$", "$0[", "$outputs/x/0", `$0["\u0000"]`, "$steps.3/~1~0", "$key"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, scope := range []jsonref.Scope{workflow(), reversal(), rule()} {
			ref, _, err := scope.Parse(text)
			if err != nil || ref == nil {
				continue
			}
			again, _, err := scope.Parse(ref.String())
			if err != nil || again == nil || !cmp.Equal(again, ref) {
				t.Fatalf("%q is %s, which reads back as %v, %v", text, ref, again, err)
			}
		}
		if p, ok := jsonref.ParsePointer(text); ok && p.String() != text {
			t.Fatalf("ParsePointer(%q) writes %q", text, p)
		}
	})
}
