package envelope_test

import (
	"errors"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

func TestDurationsReadBack(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]struct {
		d    time.Duration
		text string
	}{
		"1h": {time.Hour, "1h"}, "60m": {time.Hour, "1h"}, "1h30m0s": {90 * time.Minute, "1h30m"}, "90s": {90 * time.Second, "1m30s"},
		"1d": {24 * time.Hour, "1d"}, "36h": {36 * time.Hour, "1d12h"}, "1d1ms": {24*time.Hour + time.Millisecond, "1d1ms"},
		"500ms": {500 * time.Millisecond, "500ms"}, "0d": {0, "0s"}, "0s": {0, "0s"}, "10m": {10 * time.Minute, "10m"}, "100s": {100 * time.Second, "1m40s"},
		"20h": {20 * time.Hour, "20h"}, "366d": {366 * 24 * time.Hour, "366d"},
	} {
		got, err := envelope.ParseDuration(text)
		if err != nil || time.Duration(got) != want.d || got.String() != want.text {
			t.Errorf("ParseDuration(%q) = %s (%v), %v, want %v as %s", text, got, time.Duration(got), err, want.d, want.text)
		}
		if again, err := envelope.ParseDuration(got.String()); again != got || err != nil {
			t.Errorf("%s reads back as %s, %v", got, again, err)
		}
	}
	for _, text := range []string{"", "d", "1", "1x", "-1s", "1d-1s", "1d+1s", "1.5d", "1h1d", "20000d", "99999999999h", "1 d"} {
		if got, err := envelope.ParseDuration(text); !errors.Is(err, fault.Invalid) {
			t.Errorf("ParseDuration(%q) = %s, %v, want fault.Invalid", text, got, err)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"1d12h", "1h30m", "0.5s", "1us", "9999d23h59m59.999s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := envelope.ParseDuration(text)
		if err != nil {
			return
		}
		if again, err := envelope.ParseDuration(d.String()); again != d || err != nil {
			t.Errorf("%q is %s, which reads back as %s, %v", text, d, again, err)
		}
	})
}
