package policy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// TestDefaultGrantCoversOneCall creates default grants for random calls: each
// covers that call in any notation, and no mutation of it.
func TestDefaultGrantCoversOneCall(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 11))
	mutations := 0
	for range 400 {
		call := randomObject(r, 4)
		values, loose, err := policy.Exactly(written(t, call))
		if err != nil || len(loose) != 0 {
			t.Fatalf("Exactly(%s) = %q, %v", written(t, call), loose, err)
		}
		pins, err := policy.ParsePins(values, loose)
		if err != nil {
			t.Fatal(err)
		}
		if same := otherwise(string(written(t, call))); !pins.Hold(json.RawMessage(same)) {
			t.Fatalf("the call %s does not pass as %s", written(t, call), same)
		}
		for _, mutant := range mutants(r, call) {
			was, _ := envelope.Canonical(written(t, call))
			now, err := envelope.Canonical(written(t, mutant))
			if err != nil {
				t.Fatal(err)
			}
			if string(was) == string(now) {
				continue
			}
			if mutations++; pins.Hold(written(t, mutant)) {
				t.Fatalf("a grant for %s lets %s through", was, now)
			}
		}
	}
	if mutations < 2000 {
		t.Errorf("%d mutations were tried, want 2,000", mutations)
	}
}

// TestLooseMemberLoosensOnlyItself checks that a call that differs elsewhere is
// not covered.
func TestLooseMemberLoosensOnlyItself(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 5))
	for range 300 {
		call := randomObject(r, 3)
		call["loose"], call["held"] = randomValue(r, 2), "x"
		values, loose, err := policy.Exactly(written(t, call), "/loose")
		if err != nil {
			t.Fatal(err)
		}
		pins, err := policy.ParsePins(values, loose)
		if err != nil {
			t.Fatal(err)
		}
		for _, mutant := range mutants(r, call) {
			object, ok := mutant.(map[string]any)
			if !ok {
				continue
			}
			rest, was := maps.Clone(object), maps.Clone(call)
			delete(rest, "loose")
			delete(was, "loose")
			a, _ := envelope.Canonical(written(t, was))
			b, _ := envelope.Canonical(written(t, rest))
			if got, want := pins.Hold(written(t, mutant)), string(a) == string(b); got != want {
				t.Fatalf("a grant for %s but /loose lets %s through: %t, want %t", written(t, call), written(t, mutant), got, want)
			}
		}
	}
}

func written(t *testing.T, value any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// otherwise writes the numbers of a text in another notation.
func otherwise(text string) string { return strings.ReplaceAll(text, ":1,", ":1.0,") }

func randomObject(r *rand.Rand, depth int) map[string]any {
	object := make(map[string]any)
	for range r.IntN(5) {
		object[[]string{"to", "cc", "a/b", "", "~", "0", "amount", "lines"}[r.IntN(8)]] = randomValue(r, depth-1)
	}
	return object
}

func randomValue(r *rand.Rand, depth int) any {
	if depth > 0 {
		switch r.IntN(4) {
		case 0:
			return randomObject(r, depth)
		case 1:
			list := make([]any, r.IntN(4))
			for i := range list {
				list[i] = randomValue(r, depth-1)
			}
			return list
		}
	}
	return []any{nil, true, false, "", "a", "1", "é", json.Number("1"), json.Number("0"), json.Number("-1"), json.Number("1e30"), json.Number("99999.00000000000000001"), "null"}[r.IntN(13)]
}

// mutants returns values that differ from a value in one place.
func mutants(r *rand.Rand, value any) []any {
	all := []any{map[string]any{}, []any{}, []any{value}, map[string]any{"": value}, nil, "1", json.Number("1"), json.Number("99999")}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			without := maps.Clone(v)
			delete(without, name)
			all = append(all, without)
			for _, inner := range mutants(r, v[name]) {
				with := maps.Clone(v)
				with[name] = inner
				all = append(all, with)
			}
		}
		for _, name := range []string{"bcc", "to", "cc", "0"} {
			if _, has := v[name]; !has {
				more := maps.Clone(v)
				more[name] = []any{nil, "x", map[string]any{}}[r.IntN(3)]
				all = append(all, more)
			}
		}
	case []any:
		all = append(all, append(slices.Clone(v), nil), append(slices.Clone(v), "x"), append([]any{"x"}, v...))
		for i := range v {
			all = append(all, slices.Delete(slices.Clone(v), i, i+1))
			for _, inner := range mutants(r, v[i]) {
				with := slices.Clone(v)
				with[i] = inner
				all = append(all, with)
			}
		}
	case json.Number:
		all = append(all, json.Number("2"), json.Number("-"+strings.TrimPrefix(v.String(), "-")), v.String())
	case string:
		all = append(all, v+" ", v+"\u200b", fmt.Sprintf("%q", v))
	}
	return all
}
