package envelope_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
)

const minimal = `{"type":"mcp.exec","tool":{"name":"echo"},"args":{}}`

func TestParseManyReportsErrorsPerItem(t *testing.T) {
	t.Parallel()
	list := `[` + strings.Join([]string{
		minimal,
		`{"type":"mcp.exec","tool":{"name":"echo"},"args":{"a":1,"a":2},"risk":"dire"}`,
		`null`,
		strings.Replace(minimal, `{}`, strings.Repeat(`{"a":`, 40)+`1`+strings.Repeat(`}`, 40), 1),
		strings.Replace(minimal, `{}`, `{"a":"`+strings.Repeat("x", envelope.MaxBytes)+`"}`, 1),
		minimal,
	}, " , ") + `]`
	want := [][]string{
		nil,
		{"/1/args/a duplicate_key", "/1/risk enum"},
		{"/2 type"},
		{"/3/args" + strings.Repeat("/a", 31) + " depth"},
		{"/4 size"},
		nil,
	}

	for prefix, text := range map[string]string{"": list, "/items": `{"items":` + list + `}`} {
		items, err := envelope.ParseMany([]byte(text))
		if err != nil || len(items) != len(want) {
			t.Fatalf("ParseMany = %d items, %v, want %d", len(items), err, len(want))
		}
		for i, it := range items {
			if (it.Proposal == nil) == (it.Err == nil) {
				t.Errorf("item %d has both or neither of a proposal and an error", i)
			}
			var wanted, got []string
			for _, problem := range want[i] {
				wanted = append(wanted, prefix+problem)
			}
			if it.Err != nil {
				got = problemsOf(t, it.Err)
			}
			if diff := cmp.Diff(wanted, got); diff != "" {
				t.Errorf("item %d (-want +got):\n%s", i, diff)
			}
		}
	}
}

func TestParseManyRejectsInvalidLists(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		text string
		want []string
	}{
		{"nothing", ``, []string{" syntax"}},
		{"a word", `"items"`, []string{" type"}},
		{"one envelope", minimal, []string{"/type unknown_field", "/tool unknown_field", "/args unknown_field", "/items required"}},
		{"items of another type", `{"items":{}}`, []string{"/items type"}},
		{"items twice", `{"items":[` + minimal + `],"items":[]}`, []string{"/items duplicate_key"}},
		{"an unknown field beside bad items", `{"x":1,"items":[null]}`, []string{"/x unknown_field"}},
		{"a list cut short", `[` + minimal + `,`, []string{"/1 syntax"}},
		{"a mistake inside an item", `[` + minimal + `,{"risk":"dire","type":}]`, []string{"/1/risk enum", "/1/type syntax"}},
		{"a nesting that cannot be read", `[{"args":` + strings.Repeat("[", 1000) + `}]`,
			[]string{"/0/args" + strings.Repeat("/0", 31) + " depth", "/0/args" + strings.Repeat("/0", 252) + " depth"}},
		{"something after the list", `[]]`, []string{" syntax"}},
		{"too many", `[` + strings.Repeat(minimal+",", envelope.MaxItems) + minimal + `]`, []string{"/1000 max_items"}},
		{"too many values", `[` + strings.TrimSuffix(strings.Repeat(`{"type":"mcp.exec","tool":{"name":"t"},"args":{"a":[`+strings.TrimSuffix(strings.Repeat("1,", 100_000), ",")+`]}},`, 6), ",") + `]`,
			[]string{"/4/args/a/99990 size"}},
		{"too much", strings.Repeat(" ", envelope.MaxManyBytes+1), []string{" size"}},
	}

	for _, tt := range tests {
		items, err := envelope.ParseMany([]byte(tt.text))
		if items != nil {
			t.Errorf("%s: ParseMany = %d items, want none", tt.name, len(items))
		}
		if diff := cmp.Diff(tt.want, problemsOf(t, err)); diff != "" {
			t.Errorf("%s: ParseMany (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestParseManyAcceptsMaxItems(t *testing.T) {
	t.Parallel()

	for _, n := range []int{0, 1, envelope.MaxItems} {
		items, err := envelope.ParseMany([]byte(`[` + strings.TrimSuffix(strings.Repeat(minimal+",", n), ",") + `]`))
		if err != nil || len(items) != n {
			t.Errorf("ParseMany of %d = %d, %v", n, len(items), err)
		}
	}
}
