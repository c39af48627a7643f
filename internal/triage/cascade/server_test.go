package cascade_test

import (
	"math"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// TestAskingServersOfEveryDialect has servers of every dialect answer packs.
// Log-probabilities become the confidence; without them it is fixed.
func TestAskingServersOfEveryDialect(t *testing.T) {
	t.Parallel()
	for dialect, logprobs := range map[model.Dialect]bool{
		model.LlamaServer: true, model.Ollama: true, model.VLLM: true, model.OpenAI: true, model.Lemonade: false,
	} {
		t.Run(string(dialect), func(t *testing.T) {
			t.Parallel()
			fake := modeltest.New(t, modeltest.Config{Dialect: dialect, Context: 8192, Answer: func(r modeltest.Request) modeltest.Reply {
				return modeltest.Reply{Confidence: 0.55, Text: modeltest.Fill(r.Schema, func(path string, codes []string) string {
					// The place of a message in its pack selects the code.
					name, _, _ := strings.Cut(path, ".")
					return codes[int(name[1]-'1')%len(codes)]
				})}
			}})
			config := cascade.Config{Endpoints: map[cascade.Tier]cascade.Endpoint{}}
			for _, tier := range cascade.Tiers() {
				config.Endpoints[tier] = cascade.Endpoint{Asker: fake.Tier(t, string(tier)), Server: "fake", Model: "test-model", Slots: 2}
			}
			var mails []cascade.Mail
			for i := range 11 {
				mails = append(mails, unsureMail(i))
			}

			answered := map[cascade.Tier]int{}
			for i, r := range cascade.New(config).Ask(t.Context(), mails) {
				if len(r.Open) > 0 || len(r.Replies) == 0 {
					t.Fatalf("message %d: %+v", i, r)
				}
				want := cascade.Fixed
				if logprobs {
					want = 0.55
				}
				for _, reply := range r.Replies {
					answered[reply.Tier]++
					if first := reply.Choices[0]; !reply.Answered() || math.Abs(first.Confidence-want) > 0.01 {
						t.Errorf("message %d: %+v, want a confidence of %.2f", i, reply, want)
					}
				}
			}
			if answered[cascade.T1] != len(mails) || answered[cascade.T2a] == 0 || answered[cascade.T2b] == 0 {
				t.Errorf("the tiers answered %v times", answered)
			}
			for _, request := range fake.Requests() {
				if !request.Choices && logprobs {
					t.Error("a question does not ask for log-probabilities")
				}
			}
		})
	}
}

// TestPackThatDoesNotFitIsHalved has a context for two messages: packs are
// halved until they fit.
func TestPackThatDoesNotFitIsHalved(t *testing.T) {
	t.Parallel()
	fake := modeltest.New(t, modeltest.Config{Context: 1400})
	config := cascade.Config{Endpoints: map[cascade.Tier]cascade.Endpoint{cascade.T1: {Asker: fake.Tier(t, "t1")}}}
	var mails []cascade.Mail
	for i := range 8 {
		m := unsureMail(i)
		m.Body += strings.Repeat(" word of a longer text", 50)
		mails = append(mails, m)
	}

	for i, r := range cascade.New(config).Ask(t.Context(), mails) {
		if len(r.Replies) != 1 || !r.Replies[0].Answered() || r.Replies[0].Pack >= 8 {
			t.Errorf("message %d: %+v", i, r)
		}
	}
}
