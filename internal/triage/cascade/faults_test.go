package cascade_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// drawnMail returns a message of any kind.
func drawnMail(rt *rapid.T, i int) cascade.Mail {
	m := unsureMail(i)
	m.Decision.Cohort = rapid.SampledFrom([]decide.Cohort{decide.Default, decide.CrossOrg, decide.FirstContact, decide.Newsletters, decide.Transactional}).Draw(rt, "cohort")
	m.Signals.Suspicious = rapid.IntRange(0, 4).Draw(rt, "suspicious") == 0
	m.Signals.Injection = rapid.IntRange(0, 9).Draw(rt, "injection") == 0
	if rapid.IntRange(0, 9).Draw(rt, "long") == 0 {
		m.Body = strings.Repeat(m.Body, 400)
	}
	m.Account = uuid.NewSHA1(uuid.Nil, []byte{byte(rapid.IntRange(0, 1).Draw(rt, "account"))})
	return m
}

// fault is a fault in the answer to a question.
type fault string

const (
	none     fault = "none"
	dropped  fault = "dropped"  // a message is missing in the answer
	doubled  fault = "doubled"  // a message is answered twice
	further  fault = "further"  // an unknown message is answered
	swapped  fault = "swapped"  // the messages come in another order, with their own keys
	foreign  fault = "foreign"  // an unknown code
	noJSON   fault = "no JSON"  // words
	trailing fault = "trailing" // words after the answer
)

func faults() []fault {
	return []fault{none, dropped, doubled, further, swapped, foreign, noJSON, trailing}
}

// broken returns an answer with a fault.
func (f fault) broken(t testing.TB, q model.Question) model.Answer {
	a := honest(t, q)
	a.Tokens = nil
	text := string(a.Text)
	entries := strings.SplitAfter(strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}"), "}")
	entries = slices.DeleteFunc(entries, func(e string) bool { return e == "" })
	for i := range entries {
		entries[i] = strings.TrimPrefix(entries[i], ",")
	}
	join := func(all []string) string { return "{" + strings.Join(all, ",") + "}" }
	switch f {
	case none:
		return honest(t, q)
	case dropped:
		text = join(entries[1:])
	case doubled:
		text = join(append(slices.Clone(entries[:len(entries)-1]), entries[0]))
	case further:
		text = join(append(slices.Clone(entries), strings.Replace(entries[0], "m1", "m9", 1)))
	case swapped:
		slices.Reverse(entries)
		text = join(entries)
	case foreign:
		text = strings.Replace(text, `":"`, `":"Z`, 1)
	case noJSON:
		text = "Sure! " + text
	case trailing:
		text += " " + text
	}
	a.Text = []byte(text)
	return a
}

// TestEachMessageHasItsOwnAnswerDespiteFaults checks that for any
// faults of a server and any packs, each message has exactly one result, and
// every answer is an honest model's answer about that message.
func TestEachMessageHasItsOwnAnswerDespiteFaults(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		mails := make([]cascade.Mail, rapid.IntRange(1, 24).Draw(rt, "mails"))
		for i := range mails {
			mails[i] = drawnMail(rt, i)
		}
		plan := rapid.SliceOfN(rapid.IntRange(0, 11), 1, 40).Draw(rt, "faults")
		var asked atomic.Int64
		a := &asker{reply: func(_ context.Context, q model.Question) (model.Answer, error) {
			switch n := plan[int(asked.Add(1)-1)%len(plan)]; {
			case n < len(faults()):
				return faults()[n].broken(t, q), nil
			case n == 8:
				return model.Answer{}, &model.Error{Kind: model.Cut}
			case n == 9:
				return model.Answer{}, &model.Error{Kind: model.TooLong}
			case n == 10 && len(plan) > 20:
				return model.Answer{}, &model.Error{Kind: model.Unavailable}
			case n == 11 && len(plan) > 30:
				return model.Answer{}, errors.New("interrupted")
			}
			return honest(t, q), nil
		}}
		config := all(a)
		if rapid.Bool().Draw(rt, "phased") {
			config.Endpoints[cascade.T1] = cascade.Endpoint{Asker: a, Server: "local", Model: "small"}
		}
		order := rapid.Permutation(mails).Draw(rt, "order")

		results := cascade.New(config).Ask(t.Context(), order)

		if len(results) != len(order) {
			rt.Fatalf("%d messages have %d results", len(order), len(results))
		}
		for i, r := range results {
			if r.ID != order[i].ID {
				rt.Fatalf("result %d is that of another message", i)
			}
			checkReplies(t, rt, order[i], r)
		}
		for _, q := range a.questions() {
			checkPack(rt, q)
		}
	})
}

// checkReplies compares the replies of a message with an honest model's replies
// about it alone.
func checkReplies(t *testing.T, rt *rapid.T, m cascade.Mail, r cascade.Result) {
	seen := map[cascade.Tier]bool{}
	for _, reply := range r.Replies {
		if seen[reply.Tier] {
			rt.Fatalf("tier %s has two replies", reply.Tier)
		}
		seen[reply.Tier] = true
		if !reply.Answered() {
			continue
		}
		one := &asker{reply: func(_ context.Context, q model.Question) (model.Answer, error) { return honest(t, q), nil }}
		config := cascade.Config{Endpoints: map[cascade.Tier]cascade.Endpoint{reply.Tier: {Asker: one}}}
		m.Replies = slices.DeleteFunc(slices.Clone(r.Replies), func(other cascade.Reply) bool { return other.Tier >= reply.Tier })
		again := cascade.New(config).Ask(t.Context(), []cascade.Mail{m})[0]
		if len(again.Replies) == 0 {
			rt.Fatalf("tier %s answered, and is not asked about the message alone", reply.Tier)
		}
		if diff := cmp.Diff(codes(again.Replies[len(again.Replies)-1]), codes(reply)); diff != "" {
			rt.Fatalf("tier %s has another message's answer (-own +got):\n%s", reply.Tier, diff)
		}
	}
	m.Replies = r.Replies
	if len(m.Replies) == 0 && len(r.Open) == 0 && m.Signals.Injection == false && m.Decision.Cohort != decide.Newsletters {
		rt.Fatalf("nothing was asked about a message that is left open")
	}
	if diff := cmp.Diff(cascade.Wanted(m), r.Open); diff != "" {
		rt.Fatalf("open is not what is wanted:\n%s", diff)
	}
}

func codes(r cascade.Reply) map[string]string {
	all := map[string]string{}
	for _, c := range r.Choices {
		all[c.Question] = c.Code
	}
	return all
}

// checkPack checks that messages that must be asked about separately are.
func checkPack(rt *rapid.T, q model.Question) {
	all := sections(q.User)
	if len(all) == 0 || len(all) > cascade.MaxPack {
		rt.Fatalf("a question has %d messages", len(all))
	}
	for _, s := range all[1:] {
		if senderLine(s) != senderLine(all[0]) || strings.Contains(s, "unknown sender") {
			rt.Fatalf("a pack has messages of different kinds")
		}
	}
}

func senderLine(section string) string {
	line, _, _ := strings.Cut(section, "\n")
	return line
}

// TestPacks has packs of eight of one kind without messages that must be asked
// about alone.
func TestPacks(t *testing.T) {
	t.Parallel()
	a := &asker{reply: func(_ context.Context, q model.Question) (model.Answer, error) { return honest(t, q), nil }}
	config := all(a)
	delete(config.Endpoints, cascade.T2a)
	var mails []cascade.Mail
	for i := range 23 {
		m := unsureMail(i)
		switch i {
		case 3:
			m.Signals = signal.Result{Suspicious: true}
		case 5:
			m.Decision.Cohort = decide.FirstContact
		case 7:
			m.Body = strings.Repeat("long ", 1000)
		case 9, 10:
			m.Account = uuid.Max
		case 12, 13, 14:
			m.Decision.Cohort = decide.Transactional
		}
		mails = append(mails, m)
	}

	cascade.New(config).Ask(t.Context(), mails)

	if got, want := sorted(packSizes(a.questions())), []int{1, 1, 1, 2, 3, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("the packs have %v messages, want %v", got, want)
	}
	first := users(a.questions())
	a.asked = nil
	slices.Reverse(mails)
	cascade.New(config).Ask(t.Context(), mails)
	if diff := cmp.Diff(first, users(a.questions())); diff != "" {
		t.Errorf("packs depend on the order of the messages:\n%s", diff)
	}
}

func users(questions []model.Question) []string {
	var all []string
	for _, q := range questions {
		all = append(all, q.User)
	}
	slices.Sort(all)
	return all
}
