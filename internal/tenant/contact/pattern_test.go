package contact_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
)

func patterns(t testing.TB, texts ...string) []contact.Pattern {
	t.Helper()
	list, err := contact.ParsePatterns(texts)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestParseRecipientPattern(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"/", "/to", "/to/*", "/*", "/message/channel", "/a~1b/m~0n/0", "/" + strings.Repeat("a", 199)} {
		if got, err := contact.ParsePattern(text); err != nil || got.String() != text {
			t.Errorf("ParsePattern(%q) = %q, %v, want it back", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"":                             "/*",
		"to":                           "slash",
		"to/*":                         "slash",
		"#/to":                         "slash",
		"/to*":                         "star",
		"/to/**":                       "star",
		"/a~2b":                        "~0",
		"/a~":                          "~0",
		"/a~*":                         "star",
		"/\xff":                        "UTF-8",
		"/" + strings.Repeat("a", 200): "200",
	} {
		if _, err := contact.ParsePattern(text); !errors.Is(err, fault.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("ParsePattern(%q) = %v, want an invalid one that says %q", text, err, says)
		}
	}
}

func TestParsePatterns(t *testing.T) {
	t.Parallel()

	_, err := contact.ParsePatterns([]string{"/to", "cc", "/to"})
	want := []envelope.FieldError{
		{Pointer: "/1", Rule: "pattern", Message: "must begin with a slash, such as /to/*"},
		{Pointer: "/2", Rule: "duplicate", Message: "must not repeat a pattern above it"},
	}
	if e, ok := errors.AsType[*envelope.InvalidError](err); !ok {
		t.Errorf("ParsePatterns = %v, want an InvalidError", err)
	} else if diff := cmp.Diff(want, e.Fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if _, err := contact.ParsePatterns(make([]string, 21)); err == nil || !strings.Contains(err.Error(), "20") {
		t.Errorf("ParsePatterns(21 of them) = %v, want it refused", err)
	}
	if got := patterns(t); got != nil {
		t.Errorf("ParsePatterns(none) = %v, want none", got)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		args     string
		patterns []string
		want     []string
	}{
		"no patterns":            {`{"to":"a"}`, nil, nil},
		"a member":               {`{"to":"a","cc":"b"}`, []string{"/to"}, []string{"a"}},
		"a member of a member":   {`{"message":{"channel":"a","text":"b"}}`, []string{"/message/channel"}, []string{"a"}},
		"not there":              {`{"to":"a"}`, []string{"/cc", "/to/x/y", "/message/channel"}, []string{"a"}},
		"every element":          {`{"to":["a","b","a"]}`, []string{"/to/*"}, []string{"a", "b"}},
		"one element":            {`{"to":["a","b"]}`, []string{"/to/1", "/to/01", "/to/-", "/to/2", "/to/-1"}, []string{"b"}},
		"every member":           {`{"to":{"y":"a","x":"b"}}`, []string{"/to/*"}, []string{"b", "a"}},
		"below every element":    {`{"attendees":[{"email":"a","name":"x"},{"email":"b"}]}`, []string{"/attendees/*/email"}, []string{"a", "b"}},
		"in the patterns' order": {`{"to":"a","cc":"b"}`, []string{"/cc", "/to"}, []string{"b", "a"}},
		"an array":               {`{"to":["a",["b"]]}`, []string{"/to"}, []string{"a", "b"}},
		"an object":              {`{"to":{"b":"x","a":{"c":"y"}}}`, []string{"/to"}, []string{"y", "x"}},
		"names that may be addresses": {
			`{"to":{"ana@x.org":{"name":"Ana"},"4930":1,"":2,"plain_Name-1":3}}`, []string{"/to"}, []string{"2", "4930", "1", "ana@x.org", "Ana", "3"},
		},
		"names below a star":              {`{"to":{"ana@x.org":"a"}}`, []string{"/to/*"}, []string{"ana@x.org", "a"}},
		"a single value for a list":       {`{"to":"a","attendees":"b"}`, []string{"/to/*", "/attendees/*/email"}, []string{"a", "b"}},
		"numbers":                         {`{"to":[4930901820,4.930901820e9,1.5,1e400,-3]}`, []string{"/to/*"}, []string{"4930901820", "1.5", "1e400", "-3"}},
		"neither text nor number":         {`{"to":[null,true,"",{}]}`, []string{"/to"}, nil},
		"escapes":                         {`{"a/b":{"m~n":"x"},"~1":"y"}`, []string{"/a~1b/m~0n", "/~01"}, []string{"x", "y"}},
		"a member without a name":         {`{"":"x"}`, []string{"/"}, []string{"x"}},
		"an index is a member's name too": {`{"to":{"0":"a"}}`, []string{"/to/0"}, []string{"a"}},
		"no JSON":                         {`{"to":"ana@x.org"`, []string{"/to"}, []string{`{"to":"ana@x.org"`}},
		"more than one":                   {`{} {"to":"a"}`, []string{"/to"}, []string{`{} {"to":"a"}`}},
		"no object":                       {`"a"`, []string{"/to"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(test.want, contact.Find(json.RawMessage(test.args), patterns(t, test.patterns...))); diff != "" {
				t.Errorf("Find (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(`{"to":["a",{"b@x.org":1e3}]}`), "/to/*")
	f.Add([]byte(`{"a/b":{"m~n":"x"}}`), "/a~1b/m~0n")
	f.Add([]byte(`[[["x"]]]`), "/0/*/0")
	f.Add([]byte(`{`), "/*")
	f.Fuzz(func(t *testing.T, args []byte, text string) {
		p, err := contact.ParsePattern(text)
		if err != nil {
			return
		}
		got := contact.Find(args, []contact.Pattern{p})
		if diff := cmp.Diff(got, contact.Find(args, []contact.Pattern{p})); diff != "" {
			t.Errorf("Find differs from one time to the next:\n%s", diff)
		}
		everything := map[string]bool{}
		for _, value := range contact.Find(args, patterns(t, "/*")) {
			everything[value] = true
		}
		for _, value := range got {
			if value == "" || !everything[value] {
				t.Errorf("Find(%q) has %q, which /* does not", text, value)
			}
		}
	})
}

func TestGuessRecipients(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		schema string
		want   []string
	}{
		"no schema":             {`{`, nil},
		"true":                  {`true`, nil},
		"nothing":               {`{"type":"object","properties":{"title":{"type":"string"},"count":{"type":"integer"}}}`, nil},
		"names":                 {`{"properties":{"to":{"type":"string"},"subject":{"type":"string"},"Bcc":{"type":["string","null"]}}}`, []string{"/Bcc", "/to"}},
		"lists":                 {`{"properties":{"to":{"type":"array","items":{"type":"string"}},"cc":{"anyOf":[{"type":"string"},{"type":"array"}]}}}`, []string{"/cc", "/to/*"}},
		"formats":               {`{"properties":{"owner":{"type":"string","format":"email"},"watchers":{"type":"array","items":{"format":"idn-email"}}}}`, []string{"/owner", "/watchers/*"}},
		"endings":               {`{"properties":{"customerEmail":{},"work-phone_number":{},"billing_msisdn":{"type":"integer"},"toRecipients":{"type":"array"}}}`, []string{"/billing_msisdn", "/customerEmail", "/work-phone_number", "/toRecipients/*"}},
		"nested":                {`{"properties":{"message":{"type":"object","properties":{"channel_id":{"type":"string"},"text":{"type":"string"}}}}}`, []string{"/message/channel_id"}},
		"objects of people":     {`{"properties":{"attendees":{"type":"array","items":{"properties":{"email":{"format":"email"},"name":{}}}}}}`, []string{"/attendees/*"}},
		"in lists":              {`{"properties":{"rows":{"type":"array","items":{"properties":{"mobile":{"type":"string"}}}}}}`, []string{"/rows/*/mobile"}},
		"in tuples and maps":    {`{"properties":{"a":{"prefixItems":[{"format":"email"}]},"b":{"additionalProperties":{"format":"email"}},"c":{"patternProperties":{"^x":{"format":"email"}}},"d":{"items":[{"format":"email"}]}}}`, []string{"/a/*", "/b/*", "/c/*", "/d/*"}},
		"by reference":          {`{"$defs":{"Mail":{"properties":{"to":{"$ref":"#/$defs/Address"}}},"Address":{"type":"string"}},"properties":{"mail":{"$ref":"#/$defs/Mail"}}}`, []string{"/mail/to"}},
		"by a combination":      {`{"allOf":[{"properties":{"to":{}}}],"anyOf":[{"properties":{"cc":{}}}],"oneOf":[{"properties":{"bcc":{}}}],"if":{},"then":{"properties":{"phone":{}}},"else":{"properties":{"handle":{}}}}`, []string{"/bcc", "/cc", "/handle", "/phone", "/to"}},
		"recursive":             {`{"properties":{"to":{"type":"string"},"reply":{"$ref":"#"}}}`, []string{"/to", "/reply/to"}},
		"a reference to itself": {`{"$defs":{"a":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`, nil},
		"references elsewhere":  {`{"properties":{"x":{"$ref":"https://example.org/s"},"y":{"$ref":"#anchor"},"z":{"$ref":"#/$defs/none/at/all"}}}`, nil},
		"senders":               {`{"properties":{"from":{"format":"email"},"sender_email":{},"reply_to":{"format":"email"},"fromEmail":{}}}`, nil},
		"ranges":                {`{"properties":{"from":{"type":"integer"},"to":{"type":"integer"}}}`, nil},
		"ranges of time":        {`{"properties":{"to":{"type":"string","format":"date-time"}}}`, nil},
		"switches":              {`{"properties":{"email":{"type":"boolean"},"sms":{"const":true}}}`, nil},
		"numbers that reach":    {`{"properties":{"chat_id":{"type":"integer"},"to":{"type":["integer","string"]}}}`, []string{"/chat_id", "/to"}},
		"odd names":             {`{"properties":{"a/b~c":{"format":"email"},"x*":{"format":"email"}}}`, []string{"/*", "/a~1b~0c"}},
		"too long a name":       {`{"properties":{"` + strings.Repeat("x", 200) + `":{"format":"email"}}}`, nil},
		"ends of relations":     {`{"type":"object","properties":{"relations":{"type":"array","items":{"type":"object","properties":{"from":{"type":"string"},"to":{"type":"string"},"relationType":{"type":"string"}},"required":["from","to","relationType"]}}},"required":["relations"]}`, nil},
		"ends of a move":        {`{"properties":{"source":{"type":"string"},"destination":{"type":"string"}}}`, nil},
		"a text message":        {`{"properties":{"source":{"type":"string"},"destination":{"type":"string"},"text":{"type":"string"}}}`, []string{"/destination"}},
		"a call":                {`{"properties":{"from":{"type":"string"},"to":{"type":"string"}}}`, []string{"/to"}},
		"a mail of a relation":  {`{"properties":{"to":{"type":"string"},"relationship":{"type":"string"}}}`, []string{"/to"}},
		"who is assigned":       {`{"properties":{"assignee":{"type":"string"}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := contact.InferRecipients(json.RawMessage(test.schema))

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("GuessRecipients (-want +got):\n%s", diff)
			}
			patterns(t, got...)
		})
	}
}

func TestGuessRecipientsIsBounded(t *testing.T) {
	t.Parallel()

	// Each schema contains the next one twice: over a million, if all were
	// followed.
	doubling := `{"properties":{"to":{}},"$defs":{`
	for _, c := range "abcdefghijklmnopqrst" {
		next := string(c + 1)
		doubling += `"` + string(c) + `":{"allOf":[{"$ref":"#/$defs/` + next + `"},{"$ref":"#/$defs/` + next + `"}]},`
	}
	doubling += `"u":{}},"$ref":"#/$defs/a"}`
	wide := `{"properties":{`
	for range 40 {
		wide += `"` + strings.Repeat("x", 1+strings.Count(wide, "email")) + `_email":{},`
	}
	wide += `"to":{"type":"array"}}}`
	deep := strings.Repeat(`{"properties":{"x":`, 100) + `{"properties":{"to":{}}}` + strings.Repeat("}}", 100)

	if got := contact.InferRecipients(json.RawMessage(wide)); len(got) != contact.MaxPatterns || got[0] != "/"+"x_email" {
		t.Errorf("GuessRecipients(41 of them) = %q, want the first 20", got)
	}
	if got := contact.InferRecipients(json.RawMessage(deep)); len(got) != 0 {
		t.Errorf("GuessRecipients(deep down) = %q, want none", got)
	}
	if diff := cmp.Diff([]string{"/to"}, contact.InferRecipients(json.RawMessage(doubling))); diff != "" {
		t.Errorf("GuessRecipients(doubling) (-want +got):\n%s", diff)
	}
}
