package cascade_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

func TestWanted(t *testing.T) {
	t.Parallel()
	sure := func(m *cascade.Mail) {
		m.Prediction.Attention, m.Decision.Confidence = .05, .95
		m.Prediction.ActConfidence, m.Prediction.CategoryConfidence = .9, .9
	}
	says := func(tier cascade.Tier, codes map[string]string, sure float64) func(*cascade.Mail) {
		return func(m *cascade.Mail) { m.Replies = append(m.Replies, reply(tier, true, codes, sure)) }
	}
	shown := says(cascade.T1, map[string]string{"show": "Y", "kind": "D"}, .9)
	hidden := says(cascade.T1, map[string]string{"show": "N", "kind": "L"}, .9)
	bulk := says(cascade.T1, map[string]string{"show": "N", "kind": "B"}, .6)
	asks := says(cascade.T2a, map[string]string{"act": "R", "category": "PE", "priority": "N"}, .9)
	calm := says(cascade.T2a, map[string]string{"act": "F", "category": "PE", "priority": "I"}, .95)
	cohort := func(c decide.Cohort) func(*cascade.Mail) { return func(m *cascade.Mail) { m.Decision.Cohort = c } }
	for name, test := range map[string]struct {
		with []func(*cascade.Mail)
		want string
	}{
		"not sure":                  {nil, "[t1 t2a] unsure unsure unread"},
		"sure":                      {[]func(*cascade.Mail){sure}, "[] sure sure unread"},
		"sure by another threshold": {[]func(*cascade.Mail){sure, func(m *cascade.Mail) { m.Settings.Confident = .97 }}, "[t1 t2a] unsure unsure unread"},
		"sure, but not of an act that counts": {[]func(*cascade.Mail){sure, func(m *cascade.Mail) {
			m.Prediction.ActConfidence, m.Prediction.NeedsAttention = .5, true
		}}, "[t2a] sure act unread"},
		"confident except in an act without effect": {[]func(*cascade.Mail){sure, func(m *cascade.Mail) { m.Prediction.ActConfidence = .5 }}, "[] sure sure unread"},
		"sure, but not of a machine's act":          {[]func(*cascade.Mail){sure, cohort(decide.Transactional), func(m *cascade.Mail) { m.Prediction.ActConfidence = .5 }}, "[t2a] sure act unread"},
		"sure, but not of a label":                  {[]func(*cascade.Mail){sure, cohort(decide.Transactional), func(m *cascade.Mail) { m.Prediction.CategoryConfidence = .5 }}, "[t2a] sure category unread"},
		"attention and bucket contradict":           {[]func(*cascade.Mail){sure, func(m *cascade.Mail) { m.Decision.Confidence = .1 }}, "[t1 t2a] unsure unsure unread"},
		"instructions":                              {[]func(*cascade.Mail){func(m *cascade.Mail) { m.Signals.Injection = true }}, "[] injection injection injection"},
		"phishing":                                  {[]func(*cascade.Mail){func(m *cascade.Mail) { m.Signals.Phishing = true }}, "[] phishing phishing phishing"},
		"suspicious":                                {[]func(*cascade.Mail){func(m *cascade.Mail) { m.Signals.Suspicious = true }}, "[t1 t2a] unsure unsure unread"},
		"empty":                                     {[]func(*cascade.Mail){func(m *cascade.Mail) { m.Subject, m.Body = " ", "\n" }}, "[] empty empty empty"},
		"newsletter":                                {[]func(*cascade.Mail){cohort(decide.Newsletters)}, "[t1] unsure bulk unread"},
		"an answer on a list":                       {[]func(*cascade.Mail){cohort(decide.Newsletters), func(m *cascade.Mail) { m.Signals.Sums = map[signal.Axis]float64{signal.Need: 4} }}, "[t1 t2a] unsure unsure unread"},
		"worth showing":                             {[]func(*cascade.Mail){sure, shown}, "[t2a] sure shown unread"},
		"not worth showing":                         {[]func(*cascade.Mail){sure, hidden}, "[] sure sure unread"},
		"bulk by its text":                          {[]func(*cascade.Mail){bulk}, "[] unsure bulk unread"},
		"asks for something":                        {[]func(*cascade.Mail){shown, asks}, "[t2b] unsure shown response"},
		"a machine asks for something":              {[]func(*cascade.Mail){shown, asks, cohort(decide.Transactional)}, "[] unsure shown plain"},
		"calm":                                      {[]func(*cascade.Mail){shown, calm}, "[] unsure shown plain"},
		"near":                                      {[]func(*cascade.Mail){shown, func(m *cascade.Mail) { m.Prediction.Attention = .9 }, says(cascade.T2a, map[string]string{"act": "F", "category": "PE", "priority": "I"}, .5)}, "[t2b] unsure shown near"},
		"a tier that failed is not asked again": {[]func(*cascade.Mail){func(m *cascade.Mail) {
			m.Replies = []cascade.Reply{{Tier: cascade.T1, Prompt: "t1.v1", Failed: model.Invalid}, {Tier: cascade.T2a, Prompt: "t2a.v1", Failed: model.Cut}}
		}}, "[] unsure unsure unread"},
		"a reply to another prompt": {[]func(*cascade.Mail){func(m *cascade.Mail) { m.Replies = []cascade.Reply{{Tier: cascade.T1, Prompt: "t1.v0"}} }}, "[t1 t2a] unsure unsure unread"},
	} {
		m := unsureMail(1)
		for _, change := range test.with {
			change(&m)
		}
		got := fmt.Sprint(cascade.Wanted(m))
		for _, r := range cascade.Reasons(m) {
			got += " " + r.Rule
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestAskingEnds checks that for any message no tier is asked twice, and asking
// ends.
func TestAskingEnds(t *testing.T) {
	t.Parallel()
	for _, cohort := range []decide.Cohort{decide.VIP, decide.FirstContact, decide.Newsletters, decide.Transactional, decide.Default, "unknown"} {
		m := unsureMail(1)
		m.Decision.Cohort = cohort
		m.Prediction = classify.Prediction{}
		var asked []cascade.Tier
		for wanted := cascade.Wanted(m); len(wanted) > 0; wanted = cascade.Wanted(m) {
			if slices.Contains(asked, wanted[0]) {
				t.Fatalf("%s: %s is asked twice", cohort, wanted[0])
			}
			asked = append(asked, wanted[0])
			r := reply(wanted[0], false, map[string]string{"show": "Y", "kind": "D", "act": "R", "category": "PE", "priority": "N", "score": "M", "window": "N", "first_reason": "Q", "second_reason": "N"}, .5)
			m.Replies = append(m.Replies, r)
		}
	}
}
