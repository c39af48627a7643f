package limits

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/client/wire"
)

func TestParseWindow(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]wire.Window{
		"20:00-08:00+1":              {From: "20:00", Until: "08:00+1"},
		"sat,sun 00:00-24:00":        {Days: []string{"sat", "sun"}, From: "00:00", Until: "24:00"},
		"fri-mon, wed  12:00-13:00 ": {Days: []string{"fri", "sat", "sun", "mon", "wed"}, From: "12:00", Until: "13:00"},
	} {
		got, err := parseWindow(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("parseWindow(%q): %v (-want +got):\n%s", text, err, diff)
		}
	}
}
