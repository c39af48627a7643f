package envelope_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	nines := strings.Repeat("9", 100)
	tests := []struct{ name, raw, want string }{
		{"white space", " [ 1 ,\t{ } ,\r\n[ ] , { \"a\" : null } ] ", `[1,{},[],{"a":null}]`},
		{"words", `[true,false,null]`, `[true,false,null]`},
		{"escapes", `"\u0062\u20ac\u000f\u001F\u000a\t\b\f\r\"\\\/\u0022\u005c\u007f"`, "\"b€\\u000f\\u001f\\n\\t\\b\\f\\r\\\"\\\\/\\\"\\\\\x7f\""},
		{"markup is left alone", `"<a href=\"x\">&\u2028"`, "\"<a href=\\\"x\\\">&\u2028\""},
		{"surrogate pair", `"\ud83d\ude00"`, `"😀"`},
		{"order by UTF-16 code units", `{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`,
			"{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}"},
		{"order of escaped names", `{"b":1,"\\":2,"]":3,"\"":4,"a":5,"\n":6,"":7,"!":8,"aa":9}`,
			`{"":7,"\n":6,"!":8,"\"":4,"\\":2,"]":3,"a":5,"aa":9,"b":1}`},
		{"order of supplementary characters", `{"\ud83d\ude01":1,"\ud83d\ude00":2,"\ud800\udc00z":3}`, "{\"\U00010000z\":3,\"😀\":2,\"😁\":1}"},
		{"order in objects within", `{"b":[{"d":1,"c":{"z":1,"y":2}}],"a":{}}`, `{"a":{},"b":[{"c":{"y":2,"z":1},"d":1}]}`},
		{"integers keep every digit", `[12345678901234567890,-12345678901234567891]`, `[12345678901234567890,-12345678901234567891]`},
		{"one", `[1,1.0,1e0,10e-1,0.1e1,100E-2,1.000e+0]`, `[1,1,1,1,1,1,1]`},
		{"zero", `[0,-0,0.0,-0.00,0e5,-0e-5]`, `[0,0,0,0,0,0]`},
		{"fractions", `[0.1,-0.10,1.50,0.000001,0.0000001,123.4560]`, `[0.1,-0.1,1.5,0.000001,1e-7,123.456]`},
		{"large", `[1e20,1e21,1e22,100000000000000000000,1000000000000000000000,123e25]`,
			`[100000000000000000000,1e+21,1e+22,100000000000000000000,1e+21,1.23e+27]`},
		{"more digits than a float has", `[0.1000000000000000055511151231257827,` + nines + `]`,
			`[0.1000000000000000055511151231257827,9.` + nines[1:] + `e+99]`},
		{"at the limit", `[1.7976931348623157e308,-5e-324,0.1e309,3e-324,0e400]`, `[1.7976931348623157e+308,-5e-324,1e+308,3e-324,0]`},
	}

	for _, tt := range tests {
		got, err := envelope.Canonical([]byte(tt.raw))
		if err != nil {
			t.Errorf("%s: Canonical = %v, want no error", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s: Canonical (-want +got):\n%s", tt.name, diff)
		}
		if again, err := envelope.Canonical(got); err != nil || string(again) != string(got) {
			t.Errorf("%s: Canonical of a canonical form = %s, %v, want the same", tt.name, again, err)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, want string }{
		{"nothing", "", " syntax"},
		{"two values", "1 2", " syntax"},
		{"a key twice", `[{"a":1,"b":2,"a":1}]`, "/0/a duplicate_key"},
		{"a power of ten too far up", "1e401", " number"},
		{"a power of ten too far down", "1e-401", " number"},
		{"a power of ten beyond counting", "1e99999999999999999999", " number"},
		{"a zero with such a power", "0e401", " number"},
		{"more than a float has", "10e308", " number"},
		{"hardly more than a float has", "-1.7976931348623159e308", " number"},
		{"less than a float has", "0.1e-324", " number"},
		{"hardly less than a float has", `{"a":[1,{"b":2e-324}]}`, "/a/1/b number"},
		{"more than a float has, without an exponent", strings.Repeat("9", 309), " number"},
		{"too many digits", strings.Repeat("1", 401), " number"},
		{"too deep", strings.Repeat("[", 129) + strings.Repeat("]", 129), strings.Repeat("/0", 128) + " depth"},
	}

	for _, tt := range tests {
		_, err := envelope.Canonical([]byte(tt.raw))
		if diff := cmp.Diff([]string{tt.want}, problemsOf(t, err)); diff != "" {
			t.Errorf("%s: Canonical (-want +got):\n%s", tt.name, diff)
		}
	}
	if _, err := envelope.Canonical([]byte(strings.Repeat("[", 128) + strings.Repeat("]", 128))); err != nil {
		t.Errorf("Canonical of 128 levels = %v, want no error", err)
	}
}

func TestCanonicalWritesFloatsAsRFC8785(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 {
			t.Skip("not a number that JSON and RFC 8785 write")
		}
		// encoding/json writes floats as ECMAScript does.
		want, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range []byte{'e', 'g'} {
			got, err := envelope.Canonical([]byte(strconv.FormatFloat(f, format, -1, 64)))
			if err != nil || string(got) != string(want) {
				t.Fatalf("Canonical(%g) = %s, %v, want %s", f, got, err, want)
			}
		}
	})
}

// TestCanonicalAcceptsFloats draws decimal numbers around the ends of the
// range of floats, and compares with how a float reads them.
func TestCanonicalAcceptsFloats(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[1-9](\.[0-9]{1,25})?`).Draw(t, "digits")
		exponent := rapid.OneOf(rapid.IntRange(-330, -300), rapid.IntRange(300, 312), rapid.IntRange(-400, 400)).Draw(t, "exponent")
		text := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign") + digits + "e" + strconv.Itoa(exponent)
		f, errFloat := strconv.ParseFloat(text, 64)
		held := errFloat == nil && f != 0

		got, err := envelope.Canonical([]byte(text))

		if held != (err == nil) {
			t.Fatalf("Canonical(%s) = %s, %v, but as a float it is %g", text, got, err, f)
		}
		if again, errAgain := strconv.ParseFloat(string(got), 64); held && (errAgain != nil || again != f) {
			t.Fatalf("Canonical(%s) = %s, which is another float", text, got)
		}
	})
}

func TestCanonicalDoesNotDependOnSpelling(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		one, other := spell(random, v), spell(random, v)

		a, errA := envelope.Canonical([]byte(one))
		b, errB := envelope.Canonical([]byte(other))

		if errA != nil || errB != nil {
			t.Fatalf("Canonical = %v, %v, want no error\n%s\n%s", errA, errB, one, other)
		}
		if string(a) != string(b) || envelope.DigestOf(a) != envelope.DigestOf(b) {
			t.Fatalf("two spellings of one value differ:\n%s\n%s\n%s\n%s", one, other, a, b)
		}
		if diff := cmp.Diff(v, decode(t, a)); diff != "" {
			t.Fatalf("Canonical changed the value (-want +got):\n%s", diff)
		}
	})
}

func TestCanonicalDiffersForDifferentValues(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		v, w := value(2).Draw(t, "value"), value(2).Draw(t, "other")
		random := rand.New(rand.NewPCG(1, 2))
		a, errA := envelope.Canonical([]byte(spell(random, v)))
		b, errB := envelope.Canonical([]byte(spell(random, w)))

		if errA != nil || errB != nil {
			t.Fatalf("Canonical = %v, %v, want no error", errA, errB)
		}
		if same := cmp.Equal(v, w); same != (string(a) == string(b)) {
			t.Fatalf("values are the same: %t, canonical forms are %s and %s", same, a, b)
		}
	})
}

// value draws a JSON value as encoding/json decodes it. Numbers are whole, so
// that spell can write them in many ways.
func value(depth int) *rapid.Generator[any] {
	text := rapid.StringOf(rapid.OneOf(
		rapid.RuneFrom([]rune("ab\"\\/\n\u0001\u007fé€\ufb33😀\U0010ffff")), rapid.Rune(),
	).Filter(func(r rune) bool { return r != 0 }))
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), text.AsAny(),
		rapid.Map(rapid.Int64(), func(n int64) any { return json.Number(strconv.FormatInt(n, 10)) }),
	)
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(
		leaf,
		rapid.SliceOfN(value(depth-1), 0, 5).AsAny(),
		rapid.MapOfN(text, value(depth-1), 0, 8).AsAny(),
	)
}

// spell writes a value with random order, white space, escapes and notation.
func spell(random *rand.Rand, v any) string {
	space := func() string { return []string{"", "", " ", "\n\t"}[random.IntN(4)] }
	var text string
	switch v := v.(type) {
	case nil:
		text = "null"
	case bool:
		text = strconv.FormatBool(v)
	case json.Number:
		text = []string{v.String(), v.String() + ".0", v.String() + "e0", v.String() + ".00E-0"}[random.IntN(4)]
	case string:
		text = `"`
		for _, r := range v {
			quoted, _ := json.Marshal(string(r))
			switch hi, lo := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00; {
			case random.IntN(2) == 0:
				text += string(quoted[1 : len(quoted)-1])
			case r > 0xffff:
				text += fmt.Sprintf(`\u%04x\u%04X`, hi, lo)
			default:
				text += fmt.Sprintf(`\u%04X`, r)
			}
		}
		text += `"`
	case []any:
		for i, e := range v {
			if i > 0 {
				text += ","
			}
			text += spell(random, e)
		}
		text = "[" + text + space() + "]"
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for i, name := range names {
			if i > 0 {
				text += ","
			}
			text += spell(random, name) + ":" + spell(random, v[name])
		}
		text = "{" + text + space() + "}"
	}
	return space() + text + space()
}

// decode reads JSON with its numbers as they are written.
func decode(tb interface{ Fatal(...any) }, text []byte) any {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		tb.Fatal(err)
	}
	return v
}

func TestCheckJSONBoundsTheValues(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		`[1,2]`: true, `[1,2,3]`: false, `{"a":{"b":1}}`: true, `{"a":{"b":[]},"c":1}`: false, `[1,1e999]`: false, `[1`: false, `1 2`: false,
	} {
		err := envelope.CheckJSON([]byte(text), 3)

		if (err == nil) != ok {
			t.Errorf("CheckJSON(%s, 3) = %v, want it accepted: %t", text, err, ok)
		}
	}
}
