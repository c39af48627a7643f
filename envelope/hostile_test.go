package envelope_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
)

// hostile returns texts of about n bytes that have very many problems, most of
// them in the same place or far down.
func hostile(n int) map[string]string {
	const levels = 29
	below := func(inner string) string {
		return `{"type":"mcp.exec","tool":{"name":"t"},"args":` +
			strings.Repeat(`{"kkkkkkkkkkkkkkkkkkkk":`, levels) + inner + strings.Repeat("}", levels) + `}`
	}
	var distinct strings.Builder
	for i := range n / 20 {
		distinct.WriteString(`,"k` + strconv.Itoa(i) + `":1,"k` + strconv.Itoa(i) + `":1`)
	}
	return map[string]string{
		"bad bytes in a string":       below(`"` + strings.Repeat("\xff", n) + `"`),
		"lone surrogates in a string": below(`"` + strings.Repeat(`\ud800`, n/6) + `"`),
		"NULs in a string":            below(`"` + strings.Repeat(`\u0000`, n/6) + `"`),
		"bad bytes in names":          below(`{"":0` + strings.Repeat(",\"\xff\":1", n/6) + `}`),
		"one name many times":         below(`{"a":0` + strings.Repeat(`,"a":1`, n/6) + `}`),
		"many names twice":            below(`{"a":0` + distinct.String() + `}`),
		"bad numbers":                 below(`[0` + strings.Repeat(`,1e999`, n/6) + `]`),
		"bad numbers below long name": below(`{"` + strings.Repeat("n", n/2) + `":[0` + strings.Repeat(`,1e999`, n/14) + `]}`),
		"too deep, again and again":   below(`[[[[0` + strings.Repeat(`,[]`, n/3) + `]]]]`),
	}
}

// The cost of a text must not grow with the number of its problems. The test
// counts allocations, of which reporting a problem takes several, since times
// vary on a busy machine; counting needs the process to itself.
func TestHostileTextsStayCheap(t *testing.T) { // AllocsPerRun forbids parallel tests
	const most = 5000
	for name, text := range hostile(200 << 10) {
		raw := []byte(text)
		if len(raw) > envelope.MaxBytes {
			t.Fatalf("%s: %d bytes are too many for the test", name, len(raw))
		}
		if _, err := envelope.Parse(raw); err == nil {
			t.Errorf("%s: Parse = no error, want one", name)
		}
		if got := testing.AllocsPerRun(1, func() { _, _ = envelope.Parse(raw) }); got > most {
			t.Errorf("%s: Parse allocates %.0f times, want at most %d", name, got, most)
		}
	}
}

// A list forgets the problems of an item before it reads the next one: a bad
// item must be refused however many bad ones came before it.
func TestHostileItemsDoNotAffectOthers(t *testing.T) {
	t.Parallel()
	const bad = `{"type":"mcp.exec","tool":{"name":"t"},"args":{"a":1,"a":2}}`
	var texts []string
	for range 20 {
		for _, text := range hostile(4 << 10) {
			texts = append(texts, text)
		}
	}
	texts = append(texts, bad)

	items, err := envelope.ParseMany([]byte("[" + strings.Join(texts, ",") + "]"))

	if err != nil || len(items) != len(texts) {
		t.Fatalf("ParseMany = %d items, %v, want %d", len(items), err, len(texts))
	}
	for i, it := range items {
		if it.Err == nil {
			t.Errorf("item %d is accepted, want an error", i)
		}
	}
}
