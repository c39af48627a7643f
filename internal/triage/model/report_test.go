package model_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

func reports(t *testing.T, c model.Config) []model.Report {
	t.Helper()
	set, err := model.Open(c, model.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	return set.Reports(t.Context())
}

func TestReports(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			server := modeltest.New(t, modeltest.Config{Dialect: d, Context: 3000, Slots: 3})

			got := reports(t, server.Models())

			if len(got) != 1 || !slices.Equal(got[0].Tiers, model.Tiers()) {
				t.Fatalf("Reports() = %+v, want one of the model of all tiers", got)
			}
			r := got[0]
			if !r.Usable || !r.Local || !r.Obeys || r.Dialect != d || r.Slots != 3 || r.Context != 3000 || r.Overflow != model.OverflowRefused {
				t.Errorf("Reports() = %+v", r)
			}
			if r.Accepted < 2500 || r.Accepted > 3000 || r.P50MS <= 0 || r.P95MS < r.P50MS || r.HundredMS <= 0 {
				t.Errorf("Reports() = %+v, want a prompt that nearly fills the context, and latencies", r)
			}
			if r.Logprobs == (d == model.Lemonade) {
				t.Errorf("Reports() has the log-probabilities %t", r.Logprobs)
			}
		})
	}
}

func TestReportsOfProblems(t *testing.T) {
	t.Parallel()
	t.Run("a server that cuts prompts", func(t *testing.T) {
		t.Parallel()
		server := modeltest.New(t, modeltest.Config{Dialect: model.OpenAI, Context: 2000, CutsPrompts: true})
		c := server.Models()
		for name, tier := range c.Tiers {
			tier.Context = 4000 // more than the server has
			c.Tiers[name] = tier
		}

		r := reports(t, c)[0]

		if !r.Usable || r.Overflow != model.OverflowCut || r.Accepted > 2000 {
			t.Errorf("Reports() = %+v, want a server that reads fewer than 2000 tokens and cuts", r)
		}
		if !strings.Contains(strings.Join(r.Advice, " "), "set the context to this number") {
			t.Errorf("the advice is %q", r.Advice)
		}
	})
	t.Run("a model that thinks", func(t *testing.T) {
		t.Parallel()
		server := modeltest.New(t, modeltest.Config{Dialect: model.Ollama})
		server.Fail(modeltest.Thinking)
		if r := reports(t, server.Models())[0]; !r.Usable || !r.Thinks {
			t.Errorf("Reports() = %+v, want one that thinks", r)
		}
	})
	for f, want := range map[modeltest.Fault]model.Kind{
		modeltest.Ignored: model.Disobedient, modeltest.RemoteModel: model.Remote, modeltest.WrongModel: model.WrongModel, modeltest.Loading: model.Unavailable,
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			server := modeltest.New(t, modeltest.Config{Dialect: model.Ollama})
			server.Fail(f)
			r := reports(t, server.Models())[0]
			if r.Usable || r.Kind != want || r.Why == "" || len(r.Advice) == 0 {
				t.Errorf("Reports() = %+v, want %s with advice", r, want)
			}
		})
	}
}
