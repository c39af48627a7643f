package catalog_test

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
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

func (s shop) review(r catalog.ReviewRule) {
	s.t.Helper()
	s.must(func(ctx context.Context, tx pgx.Tx) error { return catalog.PutReview(ctx, tx, s.tenant, r, "ada") })
}

func TestReviewTakesTheLargestNumberAndTheMostParticularTime(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	everything := catalog.ReviewRule{Pattern: "*", Risk: envelope.RiskLow, Needed: 2, Wait: new(10 * minute), Warn: new(time.Duration(0))}
	source := catalog.ReviewRule{Pattern: "src:*", Risk: envelope.RiskMedium, Needed: 1, Wait: new(20 * minute), Escalate: new(5 * minute)}
	exact := catalog.ReviewRule{Pattern: "src:act", Risk: envelope.RiskHigh, Needed: 3, Wait: new(30 * minute), Warn: new(minute)}
	other := catalog.ReviewRule{Pattern: "src:other", Risk: envelope.RiskLow, Needed: 5}
	for name, test := range map[string]struct {
		rules []catalog.ReviewRule
		risk  envelope.Risk
		want  catalog.Review
	}{
		"no rule":                   {nil, envelope.RiskHigh, catalog.Review{Needed: 1, Wait: 100 * minute, Warn: 20 * minute}},
		"one of another tool":       {[]catalog.ReviewRule{other}, envelope.RiskHigh, catalog.Review{Needed: 1, Wait: 100 * minute, Warn: 20 * minute}},
		"one for everything":        {[]catalog.ReviewRule{everything, other}, envelope.RiskLow, catalog.Review{Needed: 2, Wait: 10 * minute}},
		"a risk below the others'":  {[]catalog.ReviewRule{everything, source, exact}, envelope.RiskLow, catalog.Review{Needed: 2, Wait: 10 * minute}},
		"a number that is larger":   {[]catalog.ReviewRule{everything, source}, envelope.RiskMedium, catalog.Review{Needed: 2, Wait: 20 * minute, Escalate: 5 * minute}},
		"all of them":               {[]catalog.ReviewRule{everything, source, exact}, envelope.RiskHigh, catalog.Review{Needed: 3, Wait: 30 * minute, Warn: minute, Escalate: 5 * minute}},
		"a risk that is none":       {[]catalog.ReviewRule{exact}, "odd", catalog.Review{Needed: 3, Wait: 30 * minute, Warn: minute}},
		"a warning before the wait": {[]catalog.ReviewRule{{Pattern: "*", Risk: envelope.RiskLow, Needed: 1, Warn: new(200 * minute)}}, envelope.RiskLow, catalog.Review{Needed: 1, Wait: 100 * minute, Warn: 100 * minute}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			for _, r := range test.rules {
				s.review(r)
			}

			got := s.snapshot().Review(s.act(), test.risk).Or(100 * minute)

			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(catalog.Review{})); diff != "" {
				t.Errorf("Review (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReviewRulesReadBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	version := s.snapshot().Version
	want := []catalog.ReviewRule{
		{Pattern: "*", Risk: envelope.RiskLow, Needed: 1},
		{Pattern: "*", Risk: envelope.RiskHigh, Needed: 2, Wait: new(time.Hour), Warn: new(time.Minute), Escalate: new(time.Duration(0))},
		{Pattern: "src:act", Risk: envelope.RiskMedium, Needed: 5},
	}
	for _, r := range want {
		s.review(r)
	}
	s.review(want[1]) // the same again

	var got []catalog.ReviewRule
	list := func() {
		t.Helper()
		s.must(func(ctx context.Context, tx pgx.Tx) (err error) {
			got, err = catalog.Reviews(ctx, tx, s.tenant)
			return err
		})
	}
	list()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(catalog.ReviewRule{}, "UpdatedBy", "UpdatedAt")); diff != "" || got[0].UpdatedBy != "ada" {
		t.Errorf("Reviews (-want +got):\n%s", diff)
	}
	if s.snapshot().Version <= version {
		t.Error("the tenant's version did not go up")
	}
	remove := func(ctx context.Context, tx pgx.Tx) error {
		return catalog.DeleteReview(ctx, tx, s.tenant, "*", envelope.RiskHigh)
	}
	s.must(remove)
	if list(); len(got) != 2 {
		t.Errorf("%d rules are left, want 2", len(got))
	}
	if err := s.try(remove); !errors.Is(err, fault.NotFound) {
		t.Errorf("DeleteReview of what is gone = %v, want fault.NotFound", err)
	}
}

func TestReviewRulesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for name, change := range map[string]func(r *catalog.ReviewRule){
		"a key that is none":         func(r *catalog.ReviewRule) { r.Pattern = "src:a*" },
		"a risk that is none":        func(r *catalog.ReviewRule) { r.Risk = "danger" },
		"nobody":                     func(r *catalog.ReviewRule) { r.Needed = 0 },
		"a crowd":                    func(r *catalog.ReviewRule) { r.Needed = 6 },
		"no wait":                    func(r *catalog.ReviewRule) { r.Wait = new(time.Duration(0)) },
		"an endless wait":            func(r *catalog.ReviewRule) { r.Wait = new(catalog.MaxReviewTime + time.Second) },
		"a part of a second":         func(r *catalog.ReviewRule) { r.Wait = new(1500 * time.Millisecond) },
		"a warning at once":          func(r *catalog.ReviewRule) { r.Wait, r.Warn = new(time.Minute), new(time.Minute) },
		"an escalation that is late": func(r *catalog.ReviewRule) { r.Wait, r.Escalate = new(time.Minute), new(time.Hour) },
		"a warning of the past":      func(r *catalog.ReviewRule) { r.Warn = new(-time.Second) },
	} {
		r := catalog.ReviewRule{Pattern: "*", Risk: envelope.RiskLow, Needed: 1}
		change(&r)

		err := s.try(func(ctx context.Context, tx pgx.Tx) error { return catalog.PutReview(ctx, tx, s.tenant, r, "ada") })

		if !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: PutReview = %v, want fault.Invalid", name, err)
		}
	}
}
