package cascade_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// asker answers in memory and records the questions.
type asker struct {
	mutex sync.Mutex
	asked []model.Question
	reply func(ctx context.Context, q model.Question) (model.Answer, error)
}

func (a *asker) Ask(ctx context.Context, q model.Question) (model.Answer, error) {
	a.mutex.Lock()
	a.asked = append(a.asked, q)
	a.mutex.Unlock()
	return a.reply(ctx, q)
}

func (a *asker) questions() []model.Question {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return append([]model.Question(nil), a.asked...)
}

// schema is the part of a schema that questions use.
type schema struct {
	Properties map[string]struct {
		Properties map[string]struct{ Enum []string }
		Required   []string
	}
	Required []string
}

func schemaOf(t testing.TB, q model.Question) schema {
	t.Helper()
	var s schema
	if err := json.Unmarshal(q.Schema, &s); err != nil {
		t.Fatalf("the schema is not JSON: %v", err)
	}
	return s
}

// sections returns the messages of a question, split at the markers.
func sections(user string) []string {
	var all []string
	for rest := user; ; {
		_, from, ok := strings.Cut(rest, fmt.Sprintf("[mail m%d]\n", len(all)+1))
		if !ok {
			return all
		}
		section, behind, _ := strings.Cut(from, fmt.Sprintf("[end m%d]\n", len(all)+1))
		all, rest = append(all, section), behind
	}
}

// honest answers about each message by its text alone, with certainty.
func honest(t testing.TB, q model.Question) model.Answer {
	return answered(t, q, func(section, key string, codes []string) string { return codes[sum(section+key)%len(codes)] })
}

func sum(text string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return int(h.Sum32() >> 1)
}

// answered builds an answer by the schema, with one token for each code.
func answered(t testing.TB, q model.Question, choose func(section, key string, codes []string) string) model.Answer {
	t.Helper()
	s, all := schemaOf(t, q), sections(q.User)
	if len(all) != len(s.Required) {
		t.Errorf("the question has %d messages, its schema %d", len(all), len(s.Required))
	}
	a := model.Answer{Model: "test", CachedTokens: -1}
	write := func(text string, top ...model.Alternative) {
		a.Tokens = append(a.Tokens, model.Token{Text: text, Top: append([]model.Alternative{{Text: text}}, top...)})
		a.Text = append(a.Text, text...)
	}
	write("{")
	for i, name := range s.Required {
		if i > 0 {
			write(",")
		}
		write(`"` + name + `":{`)
		for j, key := range s.Properties[name].Required {
			if j > 0 {
				write(",")
			}
			write(`"` + key + `":"`)
			write(choose(all[i], key, s.Properties[name].Properties[key].Enum))
			write(`"`)
		}
		write("}")
	}
	write("}")
	return a
}

// unsureMail returns a message that every tier is asked about.
func unsureMail(i int) cascade.Mail {
	return cascade.Mail{
		ID: uuid.NewSHA1(uuid.Nil, []byte(fmt.Sprint(i))), Subject: fmt.Sprintf("Subject %d", i), Body: fmt.Sprintf("Text of message %d.", i),
		Prediction: classify.Prediction{
			Act: classify.FYI, ActConfidence: 0.4, Category: classify.Primary, CategoryConfidence: 0.5, Priority: classify.ForInfo,
			Priorities: map[classify.Priority]float64{
				classify.Urgent: 0.2, classify.NeedsResponse: 0.2, classify.ForInfo: 0.4, classify.Promotional: 0.1, classify.Personal: 0.1,
			},
			Attention: 0.45, Unwanted: 0.1, Phishing: 0.05, Model: "weights",
		},
		Decision: decide.Decision{Cohort: decide.Default, Bucket: decide.Informational, Confidence: 0.55},
	}
}

func all(a cascade.Asker) cascade.Config {
	endpoints := map[cascade.Tier]cascade.Endpoint{}
	for _, tier := range cascade.Tiers() {
		endpoints[tier] = cascade.Endpoint{Asker: a, Server: "local", Model: "one", Slots: 2}
	}
	return cascade.Config{Endpoints: endpoints}
}
