package plan_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// drawTree draws arguments that rows can represent.
func drawTree(t *rapid.T, depth int) any {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "text") == 0 {
		return rapid.StringMatching(`[a-z/~<&é"\\ ]{0,5}`).Draw(t, "value")
	}
	if rapid.Bool().Draw(t, "list") {
		list := make([]any, rapid.IntRange(1, 12).Draw(t, "items"))
		for i := range list {
			list[i] = drawTree(t, depth-1)
		}
		return list
	}
	return drawObject(t, depth)
}

func drawObject(t *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z/~.]{1,3}|`), 1, 3, rapid.ID[string]).Draw(t, "names") {
		object[name] = drawTree(t, depth-1)
	}
	return object
}

func TestLeavesAreTheInverseOfArgs(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		args, err := json.Marshal(drawObject(t, 3))
		if err != nil {
			t.Fatal(err)
		}

		rows, err := plan.Leaves(args)
		if err != nil {
			t.Fatalf("Leaves(%s): %v", args, err)
		}
		for i := range rows {
			j := rapid.IntRange(0, i).Draw(t, "swap")
			rows[i], rows[j] = rows[j], rows[i]
		}
		built, err := plan.Args(rows)

		if err != nil || !bytes.Equal(built, args) {
			t.Errorf("Args(Leaves(%s)) = %s, %v", args, built, err)
		}
	})
}

func TestArgsAreTheInverseOfLeaves(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		pointer := rapid.StringMatching(`(/(a|b|~0|~1|0|1|2|)){0,3}`)
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) plan.Row {
			return plan.Row{Pointer: pointer.Draw(t, "pointer"), Value: rapid.String().Draw(t, "value")}
		}), 0, 5).Draw(t, "rows")
		args, err := plan.Args(rows)
		if err != nil {
			return
		}

		got, err := plan.Leaves(args)

		if err != nil {
			t.Fatalf("Leaves(%s): %v", args, err)
		}
		byPointer := func(a, b plan.Row) int { return strings.Compare(a.Pointer, b.Pointer) }
		slices.SortFunc(rows, byPointer)
		slices.SortFunc(got, byPointer)
		if len(rows) > 0 && !slices.Equal(got, rows) {
			t.Errorf("Leaves(Args(rows)) (-want +got):\n%s", cmp.Diff(rows, got))
		}
	})
}

func TestArgsRefuse(t *testing.T) {
	t.Parallel()

	for name, rows := range map[string][]plan.Row{
		"the root":            {{Pointer: ""}},
		"no pointer":          {{Pointer: "a"}},
		"a list as the root":  {{Pointer: "/0"}},
		"a duplicate":         {{Pointer: "/a"}, {Pointer: "/a"}},
		"a text with members": {{Pointer: "/a"}, {Pointer: "/a/b"}},
		"members and a text":  {{Pointer: "/a/b"}, {Pointer: "/a"}},
		"a gap":               {{Pointer: "/a/0"}, {Pointer: "/a/2"}},
		"a large gap":         {{Pointer: "/a/" + strconv.Itoa(1<<62)}},
		"an index and a name": {{Pointer: "/a/0"}, {Pointer: "/a/b"}},
		"invalid UTF-8":       {{Pointer: "/a", Value: "\xff"}},
		"a NUL":               {{Pointer: "/a", Value: "\x00"}},
	} {
		if args, err := plan.Args(rows); err == nil {
			t.Errorf("%s: Args() = %s, want an error", name, args)
		}
	}
	for _, args := range []string{`[]`, `"a"`, `{"a":1}`, `{"a":null}`, `{"a":[]}`, `{"a":{}}`, `{"a":{"0":"b"}}`, `{"a":true}`, `{`} {
		if rows, err := plan.Leaves(json.RawMessage(args)); err == nil {
			t.Errorf("Leaves(%s) = %v, want an error", args, rows)
		}
	}
}

func FuzzLeaves(f *testing.F) {
	f.Add([]byte(`{"account":"ana","labels":{"add":["a","b"]},"message":{"folder":"INBOX"}}`))
	f.Add([]byte(`{"a":{"0":"b"},"~":["",{"/":""}]}`))
	f.Add([]byte(`{"a":"b","a":["c"]}`))
	f.Fuzz(func(t *testing.T, args []byte) {
		rows, err := plan.Leaves(args)
		if err != nil || len(rows) == 0 {
			return
		}

		built, err := plan.Args(rows)

		if err != nil {
			if strings.Contains(string(args), `\u0000`) {
				return
			}
			t.Fatalf("Args(Leaves(%q)): %v", args, err)
		}
		want, err := envelope.Canonical(args)
		if err != nil {
			return // a duplicate member, or text that an envelope rejects
		}
		if got, err := envelope.Canonical(built); err != nil || !bytes.Equal(got, want) {
			t.Errorf("Args(Leaves(%s)) = %s, %v", want, got, err)
		}
	})
}
