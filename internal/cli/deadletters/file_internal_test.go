package deadletters

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
)

const (
	letterOne = "019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b"
	letterTwo = "019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1c"
)

func TestReadExport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want []string
		bad  []string
	}{
		"nothing":            {"", nil, nil},
		"an export":          {`{"action_id":"` + letterOne + `","args":{"to":"x"}}` + "\n" + `{"action_id":"` + letterTwo + `"}` + "\n", []string{letterOne, letterTwo}, nil},
		"without a last end": {`{"action_id":"` + letterOne + `"}`, []string{letterOne}, nil},
		"empty lines, and one twice": {
			"\n" + `{"action_id":"` + letterOne + `"}` + "\r\n \n" + `{"action_id":"` + letterOne + `"}`, []string{letterOne}, nil,
		},
		"bad lines": {
			`{"action_id":"` + letterOne + `"}` + "\nno\n[]\nnull\n{}\n" + `{"action_id":7}` + "\n" + `{"action_id":"secret"}` + "\n\xff\n", nil,
			[]string{
				"line 2 is not a JSON object", "line 3 is not a JSON object", "line 4 is not a JSON object", "line 5 has no action_id",
				"line 6 has an action_id that is not an id", "line 7 has an action_id that is not an id", "line 8 is not UTF-8",
			},
		},
		"many bad lines": {strings.Repeat("x\n", 30), nil, []string{"line 20 is", "and 10 more"}},
		"an endless one": {"\n" + strings.Repeat("x", maxLine+1), nil, []string{"line 2 is longer than 4 MiB"}},
	} {
		got, err := readExport(strings.NewReader(test.text))

		var ids []string
		for _, id := range got {
			ids = append(ids, id.String())
		}
		if diff := cmp.Diff(test.want, ids); diff != "" || (err != nil) != (test.bad != nil) {
			t.Errorf("%s: error %v (-want +got):\n%s", name, err, diff)
		}
		for _, bad := range test.bad {
			if err == nil || !strings.Contains(err.Error(), bad) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: error %v, want %q in it", name, err, bad)
			}
		}
	}
}

func FuzzReadExport(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "{}", `{"action_id":"` + letterOne + `"}`, `{"action_id":"` + letterOne + `"}` + "\n" + `{"action_id":"` + letterTwo + `"}`,
		`{"action_id":null}`, "[1]\n\xff", `{"action_id":"` + letterOne + `","action_id":"` + letterTwo + `"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readExport(strings.NewReader(text))
		if err != nil {
			if !strings.Contains(err.Error(), "line ") || len(got) != 0 {
				t.Errorf("readExport = %d ids, %v; want no id and a line's number", len(got), err)
			}
			return
		}
		var again strings.Builder
		seen := make(map[envelope.ActionID]bool)
		for _, id := range got {
			if seen[id] {
				t.Errorf("%s is there twice", id)
			}
			seen[id] = true
			again.WriteString(`{"action_id":"` + id.String() + "\"}\n")
		}
		if back, err := readExport(strings.NewReader(again.String())); err != nil || !cmp.Equal(got, back) {
			t.Errorf("written and read again it is %v, %v; want %v", back, err, got)
		}
	})
}
