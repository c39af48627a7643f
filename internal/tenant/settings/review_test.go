package settings_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func (s fixture) review(r settings.ReviewRule) {
	s.T.Helper()
	s.Must(func(ctx context.Context, tx pgx.Tx) error { return settings.PutReview(ctx, tx, s.Tenant, r, "ada") })
}

// lasting returns a duration in the form of a review rule.
func lasting(d time.Duration) *envelope.Duration { return new(envelope.Duration(d)) }

func TestReviewUsesMostApprovalsAndMostSpecificTime(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	everything := settings.ReviewRule{Pattern: "*", Risk: envelope.RiskLow, Approvals: 2, Wait: lasting(10 * minute), Warn: lasting(0)}
	source := settings.ReviewRule{Pattern: "src:*", Risk: envelope.RiskMedium, Approvals: 1, Wait: lasting(20 * minute), Escalate: lasting(5 * minute)}
	exact := settings.ReviewRule{Pattern: "src:act", Risk: envelope.RiskHigh, Approvals: 3, Wait: lasting(30 * minute), Warn: lasting(minute)}
	other := settings.ReviewRule{Pattern: "src:other", Risk: envelope.RiskLow, Approvals: 5}
	for name, test := range map[string]struct {
		rules []settings.ReviewRule
		risk  envelope.Risk
		want  settings.Review
	}{
		"no rule":                   {nil, envelope.RiskHigh, settings.Review{Approvals: 1, Wait: 100 * minute, Warn: 20 * minute}},
		"one of another tool":       {[]settings.ReviewRule{other}, envelope.RiskHigh, settings.Review{Approvals: 1, Wait: 100 * minute, Warn: 20 * minute}},
		"one for everything":        {[]settings.ReviewRule{everything, other}, envelope.RiskLow, settings.Review{Approvals: 2, Wait: 10 * minute}},
		"a risk below the others'":  {[]settings.ReviewRule{everything, source, exact}, envelope.RiskLow, settings.Review{Approvals: 2, Wait: 10 * minute}},
		"a number that is larger":   {[]settings.ReviewRule{everything, source}, envelope.RiskMedium, settings.Review{Approvals: 2, Wait: 20 * minute, Escalate: 5 * minute}},
		"all of them":               {[]settings.ReviewRule{everything, source, exact}, envelope.RiskHigh, settings.Review{Approvals: 3, Wait: 30 * minute, Warn: minute, Escalate: 5 * minute}},
		"a risk that is none":       {[]settings.ReviewRule{exact}, "odd", settings.Review{Approvals: 3, Wait: 30 * minute, Warn: minute}},
		"a warning before the wait": {[]settings.ReviewRule{{Pattern: "*", Risk: envelope.RiskLow, Approvals: 1, Warn: lasting(200 * minute)}}, envelope.RiskLow, settings.Review{Approvals: 1, Wait: 100 * minute, Warn: 100 * minute}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			for _, r := range test.rules {
				s.review(r)
			}

			got := s.snapshot().Review(s.act(), test.risk).Or(100 * minute)

			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(settings.Review{})); diff != "" {
				t.Errorf("Review (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReviewRulesReadBack(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	version := s.snapshot().Version
	want := []settings.ReviewRule{
		{Pattern: "*", Risk: envelope.RiskLow, Approvals: 1},
		{Pattern: "*", Risk: envelope.RiskHigh, Approvals: 2, Wait: lasting(time.Hour), Warn: lasting(time.Minute), Escalate: lasting(0)},
		{Pattern: "src:act", Risk: envelope.RiskMedium, Approvals: 5},
	}
	for _, r := range want {
		s.review(r)
	}
	s.review(want[1]) // the same again

	var got []settings.ReviewRule
	list := func() {
		t.Helper()
		s.Must(func(ctx context.Context, tx pgx.Tx) (err error) {
			got, err = settings.Reviews(ctx, tx, s.Tenant)
			return err
		})
	}
	list()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(settings.ReviewRule{}, "LastChange")); diff != "" || got[0].UpdatedBy != "ada" {
		t.Errorf("Reviews (-want +got):\n%s", diff)
	}
	if s.snapshot().Version <= version {
		t.Error("the tenant's version did not go up")
	}
	remove := func(ctx context.Context, tx pgx.Tx) error {
		return settings.DeleteReview(ctx, tx, s.Tenant, "*", envelope.RiskHigh)
	}
	s.Must(remove)
	if list(); len(got) != 2 {
		t.Errorf("%d rules are left, want 2", len(got))
	}
	if err := s.Try(remove); !errors.Is(err, fault.NotFound) {
		t.Errorf("DeleteReview of what is gone = %v, want fault.NotFound", err)
	}
}

func TestInvalidReviewRules(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	for name, change := range map[string]func(r *settings.ReviewRule){
		"a key that is none":         func(r *settings.ReviewRule) { r.Pattern = "src:a*" },
		"a risk that is none":        func(r *settings.ReviewRule) { r.Risk = "danger" },
		"nobody":                     func(r *settings.ReviewRule) { r.Approvals = 0 },
		"a crowd":                    func(r *settings.ReviewRule) { r.Approvals = 6 },
		"no wait":                    func(r *settings.ReviewRule) { r.Wait = lasting(0) },
		"an endless wait":            func(r *settings.ReviewRule) { r.Wait = lasting(settings.MaxReviewTime + time.Second) },
		"a part of a second":         func(r *settings.ReviewRule) { r.Wait = lasting(1500 * time.Millisecond) },
		"a warning at once":          func(r *settings.ReviewRule) { r.Wait, r.Warn = lasting(time.Minute), lasting(time.Minute) },
		"an escalation that is late": func(r *settings.ReviewRule) { r.Wait, r.Escalate = lasting(time.Minute), lasting(time.Hour) },
		"a warning of the past":      func(r *settings.ReviewRule) { r.Warn = lasting(-time.Second) },
	} {
		r := settings.ReviewRule{Pattern: "*", Risk: envelope.RiskLow, Approvals: 1}
		change(&r)

		err := s.Try(func(ctx context.Context, tx pgx.Tx) error { return settings.PutReview(ctx, tx, s.Tenant, r, "ada") })

		if !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: PutReview = %v, want fault.Invalid", name, err)
		}
	}
}
