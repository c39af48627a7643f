package events

import "testing"

func FuzzParseEventID(f *testing.F) {
	for _, seed := range []string{"812-4711-0", "0-0-0", "18446744073709551615-9223372036854775807-999999999", "1--1-0", "1-1", "a-b-c", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := parseEventID(text)
		if err != nil {
			return
		}
		if again, err := parseEventID(id.String()); err != nil || again != id {
			t.Errorf("parseEventID(%q) = %s, %v", id, again, err)
		}
	})
}
