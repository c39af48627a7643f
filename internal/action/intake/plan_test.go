package intake_test

import (
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/fault"
)

func TestPlansReadBack(t *testing.T) {
	t.Parallel()
	for _, tool := range [][]byte{{}, {1}, make([]byte, 33)} {
		p := intake.Plan{Content: envelope.DigestOf([]byte("a")), Tool: tool, Decision: uuid.New(), IssuedAt: time.Date(2031, 5, 1, 2, 3, 4, 0, time.UTC)}

		got, err := intake.ParsePlan(p.String())

		if diff := cmp.Diff(p, got); err != nil || diff != "" {
			t.Errorf("ParsePlan(%s): %v (-want +got):\n%s", p, err, diff)
		}
	}
}

func TestParsePlanRejectsInvalidTokens(t *testing.T) {
	t.Parallel()
	whole := intake.Plan{Tool: []byte{1}}.String()
	raw, err := base64.RawURLEncoding.DecodeString(whole[len("plan_"):])
	if err != nil {
		t.Fatal(err)
	}
	raw[0]++
	for _, text := range []string{
		"", "plan_", "plan_AAAA", whole[1:], whole[:20], whole + "=", whole + "!", "plan_" + base64.RawURLEncoding.EncodeToString(raw),
		"plan_" + base64.RawURLEncoding.EncodeToString(make([]byte, 400)),
	} {
		if got, err := intake.ParsePlan(text); !errors.Is(err, fault.Invalid) {
			t.Errorf("ParsePlan(%q) = %v, %v, want it refused", text, got, err)
		}
	}
}

func TestPlansExpire(t *testing.T) {
	t.Parallel()
	p := intake.Plan{IssuedAt: time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC)}
	for after, want := range map[time.Duration]bool{
		0: false, intake.PlanLifetime: false, intake.PlanLifetime + time.Second: true, -time.Minute: false, -time.Hour: true,
	} {
		if got := p.Expired(p.IssuedAt.Add(after)); got != want {
			t.Errorf("Expired after %s = %t, want %t", after, got, want)
		}
	}
}

func FuzzParsePlan(f *testing.F) {
	f.Add(intake.Plan{Tool: []byte{1, 2, 3}, IssuedAt: time.Unix(1_900_000_000, 0)}.String())
	f.Add("plan_AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := intake.ParsePlan(text)
		if err == nil && p.String() != text && p.IssuedAt.Unix() < 1<<61 {
			t.Errorf("ParsePlan(%q) reads back as %q", text, p)
		}
	})
}
