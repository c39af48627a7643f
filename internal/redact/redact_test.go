package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/redact"
)

// planted returns credentials that must be redacted in every place. They are
// concatenated here so that secret scanners do not report them.
func planted() []string {
	return []string{
		"eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N",
		"sk-" + "proj-Ab12Cd34Ef56Gh78",
		"ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
		"github_pat_" + "11ABCDEFG0abcdefghijk",
		"xoxb-" + "123456789012-abcdefghijkl",
		"AKIA" + "IOSFODNN7EXAMPLE",
		"AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\n-----END RSA PRIVATE KEY-----",
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct{ raw, want string }{
		"nothing to redact keeps the bytes":      {` {"a" : 1.0, "b":[ "x" ]} `, ` {"a" : 1.0, "b":[ "x" ]} `},
		"the names the seed knew":                {`{"token":"a","secret":"b","password":"c","authorization":"d","api_key":"e","apikey":"f"}`, `{"token":"[REDACTED]","secret":"[REDACTED]","password":"[REDACTED]","authorization":"[REDACTED]","api_key":"[REDACTED]","apikey":"[REDACTED]"}`},
		"the names the seed missed":              {`{"access_token":"a","refreshToken":"b","client-secret":"c","X-API-Key":"d","private_key":"e","Cookie":"f","set-cookie":["g"]}`, `{"access_token":"[REDACTED]","refreshToken":"[REDACTED]","client-secret":"[REDACTED]","X-API-Key":"[REDACTED]","private_key":"[REDACTED]","Cookie":"[REDACTED]","set-cookie":"[REDACTED]"}`},
		"a whole object under a secret name":     {`{"credentials":{"user":"u","deep":[{"x":"}"}]},"id":7}`, `{"credentials":"[REDACTED]","id":7}`},
		"a number is a secret too":               {`{"password":123456}`, `{"password":"[REDACTED]"}`},
		"null and booleans tell nothing":         {`{"token":null,"password":true,"secret": false}`, `{"token":null,"password":true,"secret": false}`},
		"paging tokens stay":                     {`{"next_page_token":"abc","usage":{"max_tokens":5}}`, `{"next_page_token":"abc","usage":{"max_tokens":5}}`},
		"an escaped name":                        {`{"pass\u0077ord":"x"}`, `{"pass\u0077ord":"[REDACTED]"}`},
		"a credential as a name":                 {`{"ghp_abcdefghijklmnop":1}`, `{"[REDACTED]":1}`},
		"a bearer in a string":                   {`{"log":"sent Bearer abc.def-123 ok"}`, `{"log":"sent Bearer [REDACTED] ok"}`},
		"a password in a URL":                    {`["postgres://app:hunter2@db/x?a=b"]`, `["postgres://app:[REDACTED]@db/x?a=b"]`},
		"a query parameter":                      {`["https://x/y?a=1&access_token=abc&b=2"]`, `["https://x/y?a=1&access_token=[REDACTED]&b=2"]`},
		"JSON in a text result":                  {`[{"type":"text","text":"{\n  \"GITHUB_TOKEN\": \"abc\",\n  \"PATH\": \"/bin\"\n}"}]`, `[{"type":"text","text":"{\n  \"GITHUB_TOKEN\": \"[REDACTED]\",\n  \"PATH\": \"/bin\"\n}"}]`},
		"broken JSON in a text result":           {`["{\"api_key\": \"abc\", \"n\": "]`, `["{\"api_key\": \"[REDACTED]\", \"n\": "]`},
		"JSON within JSON within JSON":           {`["{\"t\":\"{\\\"password\\\":5}\"}"]`, `["{\"t\":\"{\\\"password\\\":\\\"[REDACTED]\\\"}\"}"]`},
		"HTML is not escaped":                    {`["<b>&amp; token=abc</b>"]`, `["<b>&amp; token=[REDACTED]</b>"]`},
		"invalid JSON becomes a string":          {`oops password=abc "x"`, `"oops password=[REDACTED] \"x\""`},
		"nothing becomes null":                   {``, `null`},
		"a NUL is replaced":                      {`["a\u0000b"]`, "[\"a\uFFFDb\"]"},
		"half a surrogate pair is replaced":      {`{"k\ud800":"\udc00x","ok":"\ud83d\ude00"}`, "{\"k\uFFFD\":\"\uFFFDx\",\"ok\":\"\\ud83d\\ude00\"}"},
		"bytes that are not UTF-8 are replaced":  {"[\"a\xffb\"]", "[\"a\uFFFDb\"]"},
		"a number beyond numeric":                {`[1e999999,-1E-99999,1e99999999999999999999,1.5e300]`, `["1e999999","-1E-99999","1e99999999999999999999",1.5e300]`},
		"a large integer stays exact":            {`{"id":12345678901234567890,"token":1}`, `{"id":12345678901234567890,"token":"[REDACTED]"}`},
		"a scalar":                               {`42`, `42`},
		"the order of members and their doubles": {`{"b":1,"token":"x","a":2,"b":3}`, `{"b":1,"token":"[REDACTED]","a":2,"b":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := redact.JSON(json.RawMessage(test.raw))

			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("Redact(%s) differs (-want +got):\n%s", test.raw, diff)
			}
		})
	}
}

func TestRedactText(t *testing.T) {
	t.Parallel()

	pem := planted()[7]
	public := strings.ReplaceAll(pem, "RSA PRIVATE", "PUBLIC")
	for name, test := range map[string]struct{ text, want string }{
		"plain":                      {"connect: no route to host (10.0.0.1:443)", "connect: no route to host (10.0.0.1:443)"},
		"empty":                      {"", ""},
		"authorization header":       {"Authorization: Bearer abc def\nHost: x", "Authorization: [REDACTED]\nHost: x"},
		"cookie header":              {"Set-Cookie: sid=1; Path=/\r\nX: y", "Set-Cookie: [REDACTED]\r\nX: y"},
		"header on a command line":   {`curl -H "Authorization: Bearer abc" -X POST`, `curl -H "Authorization: [REDACTED]" -X POST`},
		"basic":                      {"basic dXNlcjpwYXNz now", "basic [REDACTED] now"},
		"basic as a word":            {"basic authentication is off", "basic authentication is off"},
		"bearer as a word":           {"bearer authentication. Next", "bearer authentication. Next"},
		"environment":                {"GITHUB_TOKEN=abc\nDB_PASS='a b'\nPWD=/home", "GITHUB_TOKEN=[REDACTED]\nDB_PASS='[REDACTED]'\nPWD=/home"},
		"quoted with an escape":      {`password: "a\"b" next`, `password: "[REDACTED]" next`},
		"escaped once too often":     {`{\"token\":\"a b\",\"n\":1}`, `{\"token\":\"[REDACTED]\",\"n\":1}`},
		"unclosed quote":             {`password="abc`, `password="[REDACTED]`},
		"no value":                   {"token= ; password:\nx", "token= ; password:\nx"},
		"a null":                     {"token: null, secret=true", "token: null, secret=true"},
		"comparison":                 {"if token == other", "if token == other"},
		"arrow":                      {"password => abc", "password => [REDACTED]"},
		"key of another name":        {"tokens=5 next_page_token=abc", "tokens=5 next_page_token=abc"},
		"user without a password":    {"https://joe@example.com/", "https://joe@example.com/"},
		"token as user":              {"https://0123456789abcdef0123@example.com/", "https://[REDACTED]@example.com/"},
		"at sign in the password":    {"amqp://u:p@ss@host/", "amqp://u:[REDACTED]@host/"},
		"at sign in the path":        {"https://example.com/@user:x", "https://example.com/@user:x"},
		"slack webhook":              {"https://hooks.slack.com/services/T1/B2/xyz.", "https://hooks.slack.com/services/[REDACTED]"},
		"private key":                {"key " + pem + " end", "key [REDACTED] end"},
		"private key without an end": {"key -----BEGIN PRIVATE KEY-----\nabc", "key [REDACTED]"},
		"public key":                 {public, public},
		"hyphenated name":            {"sk-learn-contrib-toolbox-release", "sk-learn-contrib-toolbox-release"},
		"stuck to an escape":         {`line\nghp_abcdefghijklmnop`, `line\n[REDACTED]`},
		"not English":                {"пароль token=жук ok", "пароль token=[REDACTED] ok"},
		"already redacted":           {"token=[REDACTED]&x=1 Bearer [REDACTED]", "token=[REDACTED]&x=1 Bearer [REDACTED]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := redact.Text(test.text)

			if got != test.want {
				t.Errorf("RedactText(%q) = %q, want %q", test.text, got, test.want)
			}
		})
	}
}

// TestStoredResultsPassTheRulesOfBodies checks that any stored result of a tool
// passes check.JSON.
func TestStoredResultsPassTheRulesOfBodies(t *testing.T) {
	t.Parallel()

	deep := func(levels int) string { return strings.Repeat(`{"a":[`, levels) + strings.Repeat("]}", levels) }
	for name, test := range map[string]struct{ raw, want string }{
		"a name twice":                {`{"ok":false,"ok":true}`, `"{\"ok\":false,\"ok\":true}"`},
		"a name twice, spelt apart":   {`{"a":[{"k":1,"\u006b":2}]}`, `"{\"a\":[{\"k\":1,\"\\u006b\":2}]}"`},
		"a secret under a name twice": {`{"a":1,"token":"x","a":2}`, `"{\"a\":1,\"token\":\"[REDACTED]\",\"a\":2}"`},
		"a tiny number":               {`[0.` + strings.Repeat("0", 200) + `1e-300]`, `["0.` + strings.Repeat("0", 200) + `1e-300"]`},
		"a long number":               {`[` + strings.Repeat("9", 401) + `]`, `["` + strings.Repeat("9", 401) + `"]`},
		"deep":                        {deep(64), deep(64)},
	} {
		if got := string(redact.JSONTruncated(json.RawMessage(test.raw), redact.DefaultLimit)); got != test.want {
			t.Errorf("%s: JSONTruncated(%s) = %s, want %s", name, test.raw, got, test.want)
		}
	}
	for _, raw := range []string{
		deep(65), deep(4000), "[\"\xff\"]", `["\ud800","\u0000"]`, `[1e999999,-1e-999999]`, `{"a":1,"a":` + deep(200) + `}`,
		`{"_truncated":1,"_truncated":2,"b":"` + strings.Repeat("x", 20<<10) + `"}`, list(20_000, func(int) string { return `{"x":1,"x":2}` }), "\x00", "{",
	} {
		got := redact.JSONTruncated(json.RawMessage(raw), redact.DefaultLimit)
		if err := envelope.CheckJSON(got, 10_000); err != nil || len(got) > redact.DefaultLimit {
			t.Errorf("JSONTruncated(%.60s) has %d bytes: %v", raw, len(got), err)
		}
	}
}

func TestRedactReturnsCleanInput(t *testing.T) {
	t.Parallel()

	raw := json.RawMessage(`{"ok":true,"items":[{"id":1,"name":"a"}]}`)

	got := redact.JSON(raw)

	if &got[0] != &raw[0] {
		t.Error("Redact(clean) made a copy, want the input")
	}
}

func TestPlantedSecretsNeverSurvive(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.SampledFrom(planted()).Draw(t, "secret")
		value := plant(t, secret, 4)
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		limit := rapid.IntRange(0, 2000).Draw(t, "limit")

		for name, got := range map[string]json.RawMessage{
			"Redact": redact.JSON(raw), "Store": redact.JSONTruncated(raw, limit),
		} {
			if !json.Valid(got) {
				t.Fatalf("%s(%s) = %s, not JSON", name, raw, got)
			}
			for line := range strings.Lines(secret) {
				if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") && strings.Contains(string(got), line) {
					t.Fatalf("%s(%s) = %s, holds %q", name, raw, got, line)
				}
			}
			if again := redact.JSON(got); string(again) != string(got) {
				t.Fatalf("Redact(%s) = %s, not stable", got, again)
			}
		}
	})
}

// plant hides a secret somewhere in a random value.
func plant(t *rapid.T, secret string, depth int) any {
	around := rapid.StringMatching(`[a-z ,:{}"\\\n=é]{0,12}`)
	leaf := rapid.SampledFrom([]any{nil, true, 1.5, "plain", "", []any{}, map[string]any{}})
	switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
	case depth == 0 || kind == 0:
		return around.Draw(t, "before") + " " + secret + " " + around.Draw(t, "after")
	case kind == 1:
		return []any{leaf.Draw(t, "first"), plant(t, secret, depth-1), leaf.Draw(t, "last")}
	case kind == 2:
		inner, err := json.Marshal(plant(t, secret, depth-1))
		if err != nil {
			t.Fatal(err)
		}
		return string(inner)
	case kind == 3:
		name := rapid.SampledFrom([]string{"password", "Api-Key", "set-cookie"}).Draw(t, "name")
		return map[string]any{"a": leaf.Draw(t, "sibling"), name: secret}
	}
	return map[string]any{around.Draw(t, "name"): plant(t, secret, depth-1), "z": leaf.Draw(t, "sibling")}
}

func FuzzRedact(f *testing.F) {
	for _, secret := range planted() {
		f.Add([]byte(secret))
	}
	for _, raw := range []string{
		`{}`, `{"token":"x","a":[1,2,{"b":"c"}]}`, `"\ud800\u0000"`, `["{\"password\":1}"]`, "\xff", `[1e99999]`, `password: "`,
		`-----BEGIN `, `Bearer `, `token=\"`, `://:@`,
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := redact.JSON(raw)

		if !json.Valid(got) {
			t.Fatalf("Redact(%q) = %q, not JSON", raw, got)
		}
		if again := redact.JSON(got); string(again) != string(got) {
			t.Fatalf("Redact(%q) = %q, then %q", raw, got, again)
		}
		text := redact.Text(string(raw))
		if again := redact.Text(text); again != text {
			t.Fatalf("RedactText(%q) = %q, then %q", raw, text, again)
		}
	})
}

func BenchmarkStoreEmpty(b *testing.B) {
	raw := json.RawMessage(`{}`)
	b.ReportAllocs()
	for b.Loop() {
		redact.JSONTruncated(raw, redact.DefaultLimit)
	}
}

func BenchmarkStoreSmall(b *testing.B) {
	raw := json.RawMessage(`{"ok":true,"channel":"C024BE91L","ts":"1401383885.000061","message":{"text":"Here is a message"}}`)
	b.ReportAllocs()
	for b.Loop() {
		redact.JSONTruncated(raw, redact.DefaultLimit)
	}
}
