package cascade_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

func TestAsksEveryMessageAndKeepsAnswersApart(t *testing.T) {
	t.Parallel()
	a := &asker{reply: func(_ context.Context, q model.Question) (model.Answer, error) { return honest(t, q), nil }}
	var mails []cascade.Mail
	for i := range 20 {
		mails = append(mails, unsureMail(i))
	}

	results := cascade.New(all(a)).Ask(t.Context(), mails)

	for i, r := range results {
		if r.ID != mails[i].ID || len(r.Open) > 0 || r.Kind != "" || len(r.Replies) == 0 {
			t.Errorf("the result of message %d is %+v", i, r)
		}
		single := cascade.New(all(a)).Ask(t.Context(), mails[i:i+1])[0]
		for j := range single.Replies {
			single.Replies[j].Pack = r.Replies[j].Pack
		}
		if diff := cmp.Diff(single.Replies, r.Replies); diff != "" {
			t.Errorf("message %d has other answers in a pack (-alone +pack):\n%s", i, diff)
		}
	}
	if largest := slices.Max(packSizes(a.questions())); largest != cascade.MaxPack {
		t.Errorf("the largest pack has %d messages", largest)
	}
}

func packSizes(questions []model.Question) []int {
	var sizes []int
	for _, q := range questions {
		sizes = append(sizes, len(sections(q.User)))
	}
	return sizes
}

func TestFailedPackIsHalved(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.Kind{model.Cut, model.TooLong, model.Invalid} {
		a := &asker{reply: func(_ context.Context, q model.Question) (model.Answer, error) {
			if strings.Contains(q.User, "message 3.") {
				return model.Answer{}, &model.Error{Kind: kind}
			}
			return honest(t, q), nil
		}}
		var mails []cascade.Mail
		for i := range 8 {
			mails = append(mails, unsureMail(i))
		}
		config := all(a)
		delete(config.Endpoints, cascade.T2a)
		delete(config.Endpoints, cascade.T2b)

		results := cascade.New(config).Ask(t.Context(), mails)

		for i, r := range results {
			if failed := r.Replies[0].Failed; len(r.Replies) != 1 || (failed == kind) != (i == 3) || len(r.Open) > 0 {
				t.Errorf("%s: message %d has the replies %+v", kind, i, r.Replies)
			}
		}
		if got := packSizes(a.questions()); len(got) != 7 || got[0] != 8 || !slices.Equal(sorted(got[1:]), []int{1, 1, 2, 2, 4, 4}) {
			t.Errorf("%s: the packs are %v", kind, got)
		}
	}
}

func sorted(all []int) []int { return slices.Sorted(slices.Values(all)) }

func TestUnavailableServerLeavesTheTierOpen(t *testing.T) {
	t.Parallel()
	for kind, err := range map[model.Kind]error{
		model.Unavailable: &model.Error{Kind: model.Unavailable}, model.WrongModel: &model.Error{Kind: model.WrongModel},
		model.Remote: &model.Error{Kind: model.Remote}, model.Disobedient: &model.Error{Kind: model.Disobedient},
		"": errors.New("new mail came"),
	} {
		a := &asker{reply: func(context.Context, model.Question) (model.Answer, error) { return model.Answer{}, err }}
		config := all(a)
		for tier, endpoint := range config.Endpoints {
			endpoint.Slots = 1
			config.Endpoints[tier] = endpoint
		}
		mails := []cascade.Mail{unsureMail(1), unsureMail(2)}
		mails[1].Decision.Cohort = decide.FirstContact

		results := cascade.New(config).Ask(t.Context(), mails)

		for i, r := range results {
			if len(r.Replies) > 0 || !slices.Equal(r.Open, []cascade.Tier{cascade.T1, cascade.T2a}) || r.Kind != kind {
				t.Errorf("%v: result %d is %+v", err, i, r)
			}
		}
		if n := len(a.questions()); n != 1 {
			t.Errorf("%v: %d questions were asked of a server that is gone", err, n)
		}
	}
}

func TestNothingIsAskedAfterTheContextEnded(t *testing.T) {
	t.Parallel()
	a := &asker{reply: func(context.Context, model.Question) (model.Answer, error) {
		return model.Answer{}, &model.Error{Kind: model.Unavailable}
	}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	r := cascade.New(all(a)).Ask(ctx, []cascade.Mail{unsureMail(1)})[0]

	if len(a.questions()) > 0 || r.Kind != "" || len(r.Open) == 0 {
		t.Errorf("the result is %+v after %d questions", r, len(a.questions()))
	}
}

func TestReorder(t *testing.T) {
	t.Parallel()
	var mails []cascade.Mail
	for i := range 8 {
		mails = append(mails, unsureMail(i))
	}
	for name, test := range map[string]struct {
		choose      func(section, key string, codes []string) string
		changed, of int
	}{
		"by the message": {func(section, key string, codes []string) string { return codes[sum(section+key)%len(codes)] }, 0, 16},
		"by the place in the pack": {func() func(string, string, []string) string {
			asked := 0
			return func(_, key string, codes []string) string {
				if key == "s" {
					asked++
				}
				return codes[(asked-1)%8/4] // the first half of a pack has the first code
			}
		}(), 16, 16},
	} {
		a := &asker{reply: func(_ context.Context, q model.Question) (model.Answer, error) {
			return answered(t, q, test.choose), nil
		}}

		changed, of, err := cascade.New(all(a)).Reorder(t.Context(), cascade.T1, mails)

		if err != nil || changed != test.changed || of != test.of {
			t.Errorf("%s: %d of %d change, %v", name, changed, of, err)
		}
	}
	if _, _, err := cascade.New(cascade.Config{}).Reorder(t.Context(), cascade.T1, mails); err == nil {
		t.Error("a tier without a model was asked")
	}
	if _, _, err := cascade.New(all(&asker{})).Reorder(t.Context(), cascade.T2b, mails); err == nil {
		t.Error("eight messages were asked about at a tier for one")
	}
}
