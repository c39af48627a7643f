package source_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
)

// effects are all classes, and an unknown one.
var effects = []envelope.Effect{
	envelope.EffectRead, envelope.EffectIdempotent, envelope.EffectKeyed, envelope.EffectOnce, "strange",
}

func TestClassify(t *testing.T) {
	t.Parallel()
	const (
		done     = source.KindDone
		conflict = source.KindConflict
		refused  = source.KindRefused
		retry    = source.KindRetry
		unknown  = source.KindUnknown
	)
	type o = source.Observation
	rows := []struct {
		name       string
		seen       source.Observation
		repeatable source.Kind // read, idempotent, keyed
		once       source.Kind // the class once, and an unknown one
	}{
		{"not written", o{}, retry, retry},
		{"not written, 401 on connecting", o{Status: 401}, refused, refused},
		{"not written, 429 on connecting", o{Status: 429}, retry, retry},
		{"not written, 502 on connecting", o{Status: 502}, retry, retry},
		{"bad arguments found before sending", o{Permanent: true}, refused, refused},
		{"unknown tool", o{Written: true, Answered: true, Permanent: true}, refused, refused},
		{"answered", o{Written: true, Answered: true}, done, done},
		{"answered with 200", o{Written: true, Answered: true, Status: 200}, done, done},
		{"tool error", o{Written: true, Answered: true, Status: 200, ToolError: true}, refused, refused},
		{"tool error that is permanent", o{Written: true, Answered: true, ToolError: true, Permanent: true}, refused, refused},
		{"reported as there already", o{Written: true, Answered: true, Conflict: true}, conflict, conflict},
		{"error that means there already", o{Written: true, Answered: true, ToolError: true, Conflict: true}, conflict, conflict},
		{"no answer", o{Written: true}, retry, unknown},
		{"200 and no answer", o{Written: true, Status: 200}, retry, unknown},
		{"302", o{Written: true, Status: 302}, refused, refused},
		{"400", o{Written: true, Status: 400}, refused, refused},
		{"401", o{Written: true, Status: 401}, refused, refused},
		{"403", o{Written: true, Status: 403}, refused, refused},
		{"404", o{Written: true, Status: 404}, refused, refused},
		{"408", o{Written: true, Status: 408}, retry, retry},
		{"409", o{Written: true, Status: 409}, conflict, conflict},
		{"410", o{Written: true, Status: 410}, refused, refused},
		{"422", o{Written: true, Status: 422}, refused, refused},
		{"425", o{Written: true, Status: 425}, retry, retry},
		{"429", o{Written: true, Status: 429}, retry, retry},
		{"500", o{Written: true, Status: 500}, retry, unknown},
		{"503 with a readable body", o{Written: true, Status: 503, Answered: true}, retry, unknown},
		{"500 with the tool's word", o{Written: true, Status: 500, Answered: true, ToolError: true}, retry, unknown},
	}
	for _, row := range rows {
		for i, effect := range effects {
			want := row.repeatable
			if i >= 3 {
				want = row.once
			}
			if got := source.Classify(effect, row.seen); got != want {
				t.Errorf("%s: Classify(%s, %+v) = %s, want %s", row.name, effect, row.seen, got, want)
			}
		}
	}
}

// TestOversizedIsNotRepeated expects that an oversized answer is oversized
// again.
func TestOversizedIsNotRepeated(t *testing.T) {
	t.Parallel()
	for i, want := range []source.Kind{source.KindRefused, source.KindUnknown, source.KindUnknown, source.KindUnknown, source.KindUnknown} {
		seen := source.Observation{Written: true, Status: 200, Code: source.CodeOversized}
		if got := source.Classify(effects[i], seen); got != want {
			t.Errorf("Classify(%s, %+v) = %s, want %s", effects[i], seen, got, want)
		}
	}
}

// TestClassifyNeverGuesses checks all observations: a possible effect is never
// repeated blindly, and a certain non-effect is never unknown.
func TestClassifyNeverGuesses(t *testing.T) {
	t.Parallel()
	statuses := []int{0, 200, 202, 302, 400, 401, 404, 408, 409, 422, 425, 429, 500, 502, 503, 504}
	for bits := range 1 << 5 {
		for _, status := range statuses {
			seen := source.Observation{
				Written: bits&1 > 0, Answered: bits&2 > 0, ToolError: bits&4 > 0,
				Conflict: bits&8 > 0, Permanent: bits&16 > 0, Status: status,
			}
			for _, effect := range effects {
				got := source.Classify(effect, seen)
				if got == source.KindUnknown && !seen.Written {
					t.Errorf("Classify(%s, %+v) = unknown, though nothing was written", effect, seen)
				}
				open := seen.Written && !seen.Conflict && !seen.Permanent && (status >= 500 || !seen.Answered && status < 300)
				if got == source.KindRetry && open && (effect == envelope.EffectOnce || effect == "strange") {
					t.Errorf("Classify(%s, %+v) = retry, though it may have happened", effect, seen)
				}
				if got == source.KindDone && (!seen.Answered || seen.ToolError) {
					t.Errorf("Classify(%s, %+v) = done without a good answer", effect, seen)
				}
			}
		}
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	seen := source.Observation{
		Written: true, Status: 429, RetryAfter: 7 * time.Second, Code: source.CodeRateLimited, Message: "one line\nand another",
	}

	got := seen.Outcome("mail", envelope.EffectOnce)

	want := source.Outcome{
		Kind: source.KindRetry, Code: source.CodeRateLimited, Message: "one line", RetryAfter: 7 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Outcome() (-want +got):\n%s", diff)
	}
	seen.Message = strings.Repeat("ä", source.MaxMessageBytes)
	long := seen.Outcome("mail", envelope.EffectOnce).Message
	if len(long) > source.MaxMessageBytes || !utf8.ValidString(long) {
		t.Errorf("Outcome() has a message of %d bytes, valid %t", len(long), utf8.ValidString(long))
	}
}

func TestStatusCode(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		0: "", 200: "", 204: "", 302: "rejected", 400: "rejected", 401: "unauthorized", 403: "unauthorized",
		404: "not_found", 409: "conflict", 410: "not_found", 422: "rejected", 429: "rate_limited", 500: "server_error", 599: "server_error",
	} {
		if got := source.StatusCode(status); got != want {
			t.Errorf("StatusCode(%d) = %q, want %q", status, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		" 7 ":                           7 * time.Second,
		"0":                             0,
		"-1":                            0,
		"1.5":                           0,
		"soon":                          0,
		"99999999":                      source.MaxRetryAfter,
		"99999999999999999999":          0,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0,
		"Sun, 01 Mar 2099 12:00:00 GMT": source.MaxRetryAfter,
	} {
		if got := source.RetryAfter(value, now); got != want {
			t.Errorf("RetryAfter(%q) = %v, want %v", value, got, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("7")
	f.Add("Sun, 01 Mar 2026 12:00:30 GMT")
	f.Fuzz(func(t *testing.T, value string) {
		got := source.RetryAfter(value, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		if got < 0 || got > source.MaxRetryAfter {
			t.Errorf("RetryAfter(%q) = %v, want between 0 and %v", value, got, source.MaxRetryAfter)
		}
	})
}

func ExampleClassify() {
	// The request went out, and then the connection was cut.
	seen := source.Observation{Written: true}
	fmt.Println(source.Classify(envelope.EffectOnce, seen))
	fmt.Println(source.Classify(envelope.EffectKeyed, seen))
	// Output:
	// unknown
	// retry
}

func TestOutcomeIsUnsureIfOnceWouldBeUnknown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		seen source.Observation
		want bool
	}{
		"cut after it was written":       {source.Observation{Written: true}, true},
		"server error after it":          {source.Observation{Written: true, Status: 502}, true},
		"never written":                  {source.Observation{}, false},
		"told to come back later":        {source.Observation{Written: true, Status: 429}, false},
		"the tool's word that it failed": {source.Observation{Written: true, Answered: true, ToolError: true}, false},
		"done":                           {source.Observation{Written: true, Answered: true, Status: 200}, false},
	} {
		if got := test.seen.Outcome("mail", envelope.EffectKeyed).Unsure; got != test.want {
			t.Errorf("%s: Outcome().Unsure = %t, want %t", name, got, test.want)
		}
		if test.seen.Outcome("mail", envelope.EffectOnce).Unsure {
			t.Errorf("%s: a call of class once is unsure; it is unknown, or it is sure", name)
		}
	}
}
