package embedded

import (
	"strings"
	"testing"
)

func TestParsePidFile(t *testing.T) {
	t.Parallel()
	const whole = "4711\n/data\n1700000000\n5432\n/socket\n127.0.0.1\n  1 2\nready   \n"
	rows := map[string]struct {
		text string
		want mark
	}{
		"ready":          {whole, mark{4711, true}},
		"starting":       {strings.Replace(whole, "ready   ", "starting", 1), mark{4711, false}},
		"half written":   {whole[:30], mark{4711, false}},
		"empty":          {"", mark{}},
		"garbage":        {"\x00\x00", mark{}},
		"single backend": {"-4711\n", mark{}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := parsePidFile(row.text); got != row.want {
				t.Errorf("parsePidFile(%q) = %+v, want %+v", row.text, got, row.want)
			}
		})
	}
}

func FuzzParsePidFile(f *testing.F) {
	f.Add("4711\n/data\n1\n2\n/socket\n127.0.0.1\n1 2\nready\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got := parsePidFile(text); got.pid < 0 || got.ready && got.pid == 0 && !strings.HasPrefix(strings.TrimSpace(text), "0") {
			t.Errorf("parsePidFile(%q) = %+v", text, got)
		}
	})
}
