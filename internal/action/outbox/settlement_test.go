package outbox_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/source"
)

func TestTheKeyIsAUUIDOfVersion5(t *testing.T) {
	t.Parallel()
	for range 20 {
		l := outbox.Lease{Tenant: envelope.TenantID(uuid.New()), Action: envelope.NewActionID(), Fence: 7}

		if got, want := l.Key(), uuid.NewSHA1(uuid.UUID(l.Tenant), l.Action[:]).String(); got != want {
			t.Errorf("Key() = %s, want %s", got, want)
		}
	}
}

func TestDisposeWalksEveryOutcome(t *testing.T) {
	t.Parallel()
	type want struct {
		status   envelope.Status
		letter   outbox.Reason
		attempt  int
		deferred bool
	}
	const most = 3
	rows := map[source.Kind]func(before int) want{
		source.KindDone:     func(n int) want { return want{status: envelope.StatusSent, attempt: n + 1} },
		source.KindConflict: func(n int) want { return want{status: envelope.StatusConflict, attempt: n + 1} },
		source.KindRefused: func(n int) want {
			return want{status: envelope.StatusFailed, letter: outbox.Refused, attempt: n + 1}
		},
		source.KindUnknown: func(n int) want {
			return want{status: envelope.StatusUnknown, letter: outbox.Unknown, attempt: n + 1}
		},
		source.KindRetry: func(n int) want {
			if n+1 >= most {
				return want{status: envelope.StatusFailed, letter: outbox.Exhausted, attempt: n + 1}
			}
			return want{status: envelope.StatusPending, attempt: n + 1}
		},
	}
	effects := []envelope.Effect{envelope.EffectRead, envelope.EffectIdempotent, envelope.EffectKeyed, envelope.EffectOnce}

	for kind, expect := range rows {
		for _, effect := range effects {
			for before := range most + 2 {
				for _, deferred := range []bool{false, true} {
					it := outbox.Item{Attempt: before, MaxAttempts: most, Effect: effect, Lease: outbox.Lease{Fence: 7}}
					out := source.Outcome{Kind: kind, Code: "code", Message: "line", ProviderID: "p", Deferred: deferred}

					got := outbox.SettlementOf(it, out, time.Second, outbox.DefaultRetry())

					w := expect(before)
					if kind == source.KindRetry && deferred {
						w = want{status: envelope.StatusPending, attempt: before, deferred: true}
					}
					if diff := cmp.Diff(w, want{got.Status, got.DeadLetter, got.Attempt, got.Deferred}, cmp.AllowUnexported(want{})); diff != "" {
						t.Errorf("Dispose(%s of %s after %d attempts, deferred %t) (-want +got):\n%s", kind, effect, before, deferred, diff)
					}
					if goesBack := got.Status == envelope.StatusPending; goesBack != (got.Delay > 0) {
						t.Errorf("Dispose(%s after %d attempts) waits %v and becomes %s", kind, before, got.Delay, got.Status)
					}
					if got.Lease != it.Lease || got.Took != time.Second || got.Code != "code" || got.ProviderID != "p" {
						t.Errorf("Dispose(%s) = %+v, want what the item and the outcome say", kind, got)
					}
				}
			}
		}
	}
}

func TestDisposeStoresNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "sk-live-abcdefghijklmnopqrstuvwxyz0123456789"
	out := source.Outcome{
		Kind: source.KindRefused, Code: source.CodeToolError, Message: "authorization: Bearer " + secret,
		Result: json.RawMessage(`{"api_key":"` + secret + `"}`),
	}

	got := outbox.SettlementOf(outbox.Item{MaxAttempts: 3}, out, 0, outbox.DefaultRetry())

	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, stored := range []string{got.Message, string(got.Result), string(text)} {
		if strings.Contains(stored, secret) {
			t.Errorf("Dispose stores the secret: %s", stored)
		}
	}
}

// Results of any content are stored, and in a form that every reader accepts.
func TestHostileResultsAreStored(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	answers := []string{
		`{"ok":false,"ok":true}`, strings.Repeat(`{"a":[`, 4000) + strings.Repeat("]}", 4000), "[\"\xff\"]", `["\ud800","\u0000"]`, `[1e999999]`,
		`{"a":` + strings.Repeat("[", 1<<20), `{"t":"` + strings.Repeat("x", 1<<20) + `"}`, "\x00", " ", "null",
		`{"content":[{"type":"text","text":"{\"a\":1,\"a\":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}"}]}`,
	}
	fx.Queue(envelope.EffectKeyed, len(answers))
	items := fx.Claim(len(answers))
	all := make([]outbox.Settlement, len(answers))
	for i, raw := range answers {
		all[i] = outbox.SettlementOf(items[i], source.Outcome{Kind: source.KindDone, Result: json.RawMessage(raw)}, time.Second, outbox.DefaultRetry())
	}

	settled := fx.Settle(all...)

	if len(settled) != len(answers) {
		t.Fatalf("Settle settled %d of %d", len(settled), len(answers))
	}
	for i, it := range items {
		got := fx.Attempts(it.Action)[0].Result
		if err := envelope.CheckJSON(got, 10_000); err != nil || len(got) > redact.DefaultLimit {
			t.Errorf("of %.40q %d bytes are stored: %v", answers[i], len(got), err)
		}
		if shown := source.Outputs(got); len(shown) > 0 && envelope.CheckJSON(shown, 10_000) != nil {
			t.Errorf("of %.40q is shown %.100s", answers[i], shown)
		}
	}
}

func TestRetriesBackOffAndHonourRetryAfter(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		retry := outbox.Retry{
			Base: time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Minute)).Draw(t, "base")),
			Cap:  time.Duration(rapid.Int64Range(int64(time.Minute), int64(time.Hour)).Draw(t, "cap")),
		}
		attempt := rapid.IntRange(0, 200).Draw(t, "attempt")
		asked := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "asked"))
		out := source.Outcome{Kind: source.KindRetry, RetryAfter: asked}

		got := outbox.SettlementOf(outbox.Item{Attempt: attempt, MaxAttempts: 1000}, out, 0, retry).Delay

		switch {
		case asked > 0 && (got < asked || got > asked+asked/4+1):
			t.Fatalf("Dispose waits %v, want %v to a quarter more", got, asked)
		case asked == 0 && (got <= 0 || got > retry.Cap+retry.Cap/2+1):
			t.Fatalf("Dispose waits %v after attempt %d, want at most half more than %v", got, attempt, retry.Cap)
		case asked == 0 && attempt == 0 && (got < retry.Base/2-1 || got > retry.Base+retry.Base/2+1):
			t.Fatalf("Dispose waits %v after the first attempt, want about %v", got, retry.Base)
		}
	})
}

func TestEndsWithoutACall(t *testing.T) {
	t.Parallel()
	it := outbox.Item{Lease: outbox.Lease{Fence: 3}, Attempt: 2, MaxAttempts: 5, LeasesLost: 21, Sending: true}
	lease := it.Lease

	for name, test := range map[string]struct{ got, want outbox.Settlement }{
		"given back it is due at once and no attempt counts": {
			outbox.Release(it), outbox.Settlement{Lease: lease, Status: envelope.StatusPending, Attempt: 2, Deferred: true, WaitsFor: outbox.WaitsStart},
		},
		"skipped no attempt counts": {
			outbox.Skip(it, "deadline", "too late"),
			outbox.Settlement{Lease: lease, Status: envelope.StatusSkipped, Attempt: 2, Code: "deadline", Message: "too late"},
		},
		"lost the attempt counts and nobody knows": {
			outbox.WorkerLost(it), outbox.Settlement{Lease: lease, Status: envelope.StatusUnknown, Attempt: 3, DeadLetter: outbox.Unknown, Code: "worker_lost"},
		},
		"poison is a dead letter": {
			outbox.TooManyLeasesLost(it), outbox.Settlement{Lease: lease, Status: envelope.StatusFailed, Attempt: 2, DeadLetter: outbox.Exhausted, Code: "leases_lost"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ignore := cmpopts.IgnoreFields(outbox.Settlement{}, "Message")
			if test.want.Message != "" {
				ignore = cmpopts.IgnoreFields(outbox.Settlement{}, "Took")
			}
			if diff := cmp.Diff(test.want, test.got, ignore); diff != "" {
				t.Errorf("settlement (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPossibleEffectsNeverEndAsFailedOrSkipped(t *testing.T) {
	t.Parallel()
	once, read := envelope.EffectOnce, envelope.EffectRead
	for name, test := range map[string]struct {
		unsure bool
		lost   int
		end    func(it outbox.Item) outbox.Settlement
	}{
		"skipped after an unanswered attempt":    {unsure: true, end: func(it outbox.Item) outbox.Settlement { return outbox.Skip(it, "deadline", "late") }},
		"skipped after a worker vanished":        {lost: 1, end: func(it outbox.Item) outbox.Settlement { return outbox.Skip(it, "deadline", "late") }},
		"given up as poison":                     {lost: outbox.MaxLeasesLost + 1, end: outbox.TooManyLeasesLost},
		"refused after an unanswered attempt":    {unsure: true, end: disposed(source.Outcome{Kind: source.KindRefused})},
		"out of attempts, the last unanswered":   {end: disposed(source.Outcome{Kind: source.KindRetry, Unsure: true})},
		"out of attempts, one before unanswered": {unsure: true, end: disposed(source.Outcome{Kind: source.KindRetry})},
	} {
		for _, effect := range []envelope.Effect{envelope.EffectKeyed, envelope.EffectIdempotent, read, once} {
			it := outbox.Item{Effect: effect, Unsure: test.unsure, LeasesLost: test.lost, MaxAttempts: 1}

			got := test.end(it)

			doubt := effect != read && effect != once
			if (got.Status == envelope.StatusUnknown && got.DeadLetter == outbox.Unknown) != doubt {
				t.Errorf("%s, class %s: %s, letter %q", name, effect, got.Status, got.DeadLetter)
			}
		}
	}
}

func disposed(out source.Outcome) func(outbox.Item) outbox.Settlement {
	return func(it outbox.Item) outbox.Settlement {
		return outbox.SettlementOf(it, out, time.Second, outbox.DefaultRetry())
	}
}

func TestAnUnansweredAttemptIsRememberedThroughRetries(t *testing.T) {
	t.Parallel()
	it := outbox.Item{Effect: envelope.EffectKeyed, MaxAttempts: 9}

	first := outbox.SettlementOf(it, source.Outcome{Kind: source.KindRetry, Unsure: true}, 0, outbox.DefaultRetry())
	it.Unsure = first.Unsure
	second := outbox.SettlementOf(it, source.Outcome{Kind: source.KindRetry, Code: source.CodeRateLimited}, 0, outbox.DefaultRetry())

	if !first.Unsure || !second.Unsure || !outbox.Release(it).Unsure {
		t.Errorf("unsure after the first attempt %t, after the second %t, given back %t; want it to stay", first.Unsure, second.Unsure, outbox.Release(it).Unsure)
	}
}
