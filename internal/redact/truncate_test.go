package redact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/redact"
)

// list returns a JSON array of n values made by item.
func list(n int, item func(i int) string) string {
	items := make([]string, 0, n)
	for i := range n {
		items = append(items, item(i))
	}
	return "[" + strings.Join(items, ",") + "]"
}

func TestTruncate(t *testing.T) {
	t.Parallel()

	big := func(letter string) string { return `"` + strings.Repeat(letter, 2000) + `"` }
	for name, test := range map[string]struct{ raw, want string }{
		"fits": {` { "a" : 1 } `, ` { "a" : 1 } `},
		"fits without its white space": {
			`{"a":` + strings.Repeat(" ", 300) + `"x  y"}`,
			`{"a":"x  y"}`,
		},
		"a large first member leaves space for the others": {
			`{"a":` + big("x") + `,"b":1,"c":"end"}`,
			`{"_truncated":true,"_original_size":2024,"a":"` + strings.Repeat("x", 148) + `…[1852 bytes more]","b":1,"c":"end"}`,
		},
		"large members share": {
			`{"a":` + big("x") + `,"b":` + big("y") + `}`,
			`{"_truncated":true,"_original_size":4015,"a":"` + strings.Repeat("x", 68) + `…[1932 bytes more]","b":"` + strings.Repeat("y", 68) + `…[1932 bytes more]"}`,
		},
		"an array keeps a prefix": {
			list(40, func(i int) string { return fmt.Sprintf(`{"id":%d,"name":"n%d"}`, i, i) }),
			`{"_truncated":true,"_original_size":901,"items":[{"id":0,"name":"n0"},{"id":1,"name":"n1"},{"id":2,"name":"n2"},{"id":3,"name":"n3"},{"id":4,"name":"n4"},{"id":5,"name":"n5"},{"id":6,"name":"n6"},{"id":7,"name":"n7"}],"_omitted_items":32}`,
		},
		"a nested array is trimmed and its neighbour kept": {
			`{"items":` + list(200, func(i int) string { return fmt.Sprint(i) }) + `,"total":200}`,
			`{"_truncated":true,"_original_size":713,"items":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,{"_omitted_items":148}],"total":200}`,
		},
		"a string": {
			`"` + strings.Repeat("é", 300) + `"`,
			`{"_truncated":true,"_original_size":602,"text":"` + strings.Repeat("é", 93) + `…[414 bytes more]"}`,
		},
		"a string is cut between escapes": {
			`"` + strings.Repeat(`\ud83d\ude00\n`, 50) + `"`,
			`{"_truncated":true,"_original_size":702,"text":"` + strings.Repeat(`\ud83d\ude00\n`, 13) + `…[518 bytes more]"}`,
		},
		"a number": {
			strings.Repeat("1", 300),
			`{"_truncated":true,"_original_size":300,"text":"…"}`,
		},
		"a name that is too long": {
			`{` + big("k") + `:1,"b":2}`,
			`{"_truncated":true,"_original_size":2012,"b":2,"_omitted_keys":1}`,
		},
		"marks of its own": {
			`{"_truncated":false,"_original_size":"x","a":` + big("x") + `}`,
			`{"_truncated":true,"_original_size":2048,"a":"` + strings.Repeat("x", 164) + `…[1836 bytes more]","_omitted_keys":2}`,
		},
		"no JSON": {
			strings.Repeat("<", 300),
			`{"_truncated":true,"_original_size":302,"text":"` + strings.Repeat("<", 187) + `…[113 bytes more]"}`,
		},
		"nothing": {``, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := redact.Truncate(json.RawMessage(test.raw), redact.MinLimit)

			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("Truncate(%.60s…) differs (-want +got):\n%s", test.raw, diff)
			}
			check(t, got, redact.MinLimit)
		})
	}
}

// check fails unless raw can be stored in a row.
func check(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, raw json.RawMessage, limit int) {
	t.Helper()
	switch {
	case !json.Valid(raw):
		t.Fatalf("not JSON: %q", raw)
	case !utf8.Valid(raw):
		t.Fatalf("not UTF-8: %q", raw)
	case len(raw) > max(limit, redact.MinLimit):
		t.Fatalf("%d bytes, want at most %d: %q", len(raw), limit, raw)
	}
}

func TestTruncateLargeInput(t *testing.T) {
	t.Parallel()

	const size = 4 << 20
	deep := func(open, end string) string {
		// encoding/json rejects more than 10,000 levels of nesting.
		return strings.Repeat(open, 9000) + `"` + strings.Repeat("x", size) + `"` + strings.Repeat(end, 9000)
	}
	for name, raw := range map[string]string{
		"many elements": list(size/2, func(int) string { return "1" }),
		"many members":  "{" + strings.Repeat(`"a":0,`, size/6) + `"b":1}`,
		"one string":    `"` + strings.Repeat(`\"`, size/2) + `"`,
		"deep arrays":   deep("[", "]"),
		"deep objects":  deep(`{"a":`, "}"),
		"text":          strings.Repeat("password: \"", size/11),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := redact.JSONTruncated(json.RawMessage(raw), redact.DefaultLimit)

			check(t, got, redact.DefaultLimit)
		})
	}
}

func TestTruncateCutsDeepNesting(t *testing.T) {
	t.Parallel()

	raw := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)

	got := redact.Truncate(json.RawMessage(raw), len(raw))

	check(t, got, len(raw))
	if depth := strings.Count(string(got), "["); depth > 512 {
		t.Errorf("Truncate kept a depth of %d, want at most 512", depth)
	}
}

func TestTruncateInvariants(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(anyJSON(4).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		limit := rapid.IntRange(0, 3000).Draw(t, "limit")

		got := redact.Truncate(raw, limit)

		check(t, got, limit)
		if again := redact.Truncate(got, limit); string(again) != string(got) {
			t.Fatalf("Truncate is not stable:\n%s\n%s", got, again)
		}
		if len(raw) <= max(limit, redact.MinLimit) {
			if string(got) != string(raw) {
				t.Fatalf("Truncate(%s) = %s, want it as it was", raw, got)
			}
			return
		}
		var marks struct {
			Truncated bool `json:"_truncated"`
			Size      int  `json:"_original_size"`
		}
		if err := json.Unmarshal(got, &marks); err != nil {
			t.Fatal(err)
		}
		if !marks.Truncated || marks.Size != len(raw) {
			t.Fatalf("marks are %+v, want size %d", marks, len(raw))
		}
	})
}

// anyJSON draws values of every shape, some of them large.
func anyJSON(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kinds := 6
		if depth == 0 {
			kinds = 4
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.Float64Range(-1e9, 1e9).Draw(t, "number")
		case 1:
			return strings.Repeat(rapid.StringN(1, 5, -1).Draw(t, "piece"), rapid.IntRange(1, 400).Draw(t, "times"))
		case 2:
			return rapid.String().Draw(t, "string")
		case 3:
			return rapid.Bool().Draw(t, "bool")
		case 4:
			return rapid.SliceOfN(anyJSON(depth-1), 0, 20).Draw(t, "array")
		}
		return rapid.MapOfN(rapid.String(), anyJSON(depth-1), 0, 20).Draw(t, "object")
	})
}

func TestJSONTruncatedRedactsFirst(t *testing.T) {
	t.Parallel()

	secret := "ghp_" + strings.Repeat("a1", 20)
	for pad := range 300 {
		raw := json.RawMessage(`["` + strings.Repeat("x", pad) + " " + secret + strings.Repeat(" y", 200) + `"]`)

		got := redact.JSONTruncated(raw, redact.MinLimit)

		check(t, got, redact.MinLimit)
		if strings.Contains(string(got), "ghp_") {
			t.Fatalf("Store kept a part of the secret: %s", got)
		}
	}
}

func FuzzJSONTruncated(f *testing.F) {
	f.Add([]byte(`{}`), 0)
	f.Add([]byte(`{"a":[1,2,{"b":"`+strings.Repeat(`\u00e9`, 100)+`"}],"c":null}`), 256)
	f.Add([]byte(`["`+strings.Repeat(`\ud83d\ude00`, 100)+`"]`), 300)
	f.Add([]byte(strings.Repeat("[", 200)), 256)
	f.Fuzz(func(t *testing.T, raw []byte, limit int) {
		limit = min(limit, 4096)

		check(t, redact.Truncate(raw, limit), limit)
		got := redact.JSONTruncated(raw, limit)
		check(t, got, limit)
		if again := redact.JSONTruncated(got, limit); string(again) != string(got) {
			t.Fatalf("Store is not stable:\n%s\n%s", got, again)
		}
	})
}
