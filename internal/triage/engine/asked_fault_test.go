package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/triage/engine"
	llm "github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// settled fails the test unless each message was decided, no question is open,
// and each proposal was made once.
func (f *fixture) settled(messages int) {
	f.t.Helper()
	for _, c := range []struct {
		what, query string
		want        int
	}{
		{"messages", "SELECT count(1) FROM triage_messages", messages},
		{"decisions", "SELECT count(1) FROM triage_decisions", messages},
		{"decisions about new messages", "SELECT coalesce(sum(decided), 0)::int FROM triage_runs WHERE kind IN ('changes', 'backfill')", messages},
		{"messages that wait", "SELECT count(1) FROM triage_decisions WHERE wanted_at IS NOT NULL OR withheld OR wanted <> '{}'", 0},
		{"tiers that answered twice", `SELECT count(1) FROM (SELECT 1 FROM triage_decisions d, jsonb_array_elements(d.answers) a
			GROUP BY d.message_id, a ->> 'tier' HAVING count(1) > 1) t`, 0},
		{"rows that were not proposed", "SELECT count(1) FROM triage_proposals WHERE proposal_id IS NULL", 0},
		{"proposals beside their rows", "SELECT count(1) - (SELECT count(DISTINCT proposal_id) FROM triage_proposals) FROM proposals", 0},
	} {
		if n := one[int](f, c.query); n != c.want {
			f.t.Errorf("%d %s, want %d", n, c.what, c.want)
		}
	}
}

func TestMailIsDecidedDespiteEachServerFault(t *testing.T) {
	t.Parallel()
	// An error about one question is permanent; an error of the server is
	// retried when it recovers.
	forGood := []llm.Kind{llm.TooLong, llm.Cut, llm.Invalid}
	for _, fault := range modeltest.Faults() {
		if fault == modeltest.Silent || fault == modeltest.Thinking {
			continue // covered by TestNewMailInterruptsQuestions and by other answers
		}
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			c := modeltest.Config{}
			identified := fault == modeltest.RemoteModel || fault == modeltest.RemoteShown
			if identified {
				c.Dialect = llm.Ollama // the dialect that reports this when it is identified
			}
			fake := modeltest.New(t, c)
			f, models := asking(t, fake.Models())
			f.known()
			f.onceWith(models) // the server is probed and available
			fake.Fail(fault)
			if identified {
				models = restarted(t, fake.Models())
			}
			f.deliver("", newsletter("n@x").raw())
			f.deliver("", personal("l@x").raw())

			f.onceWith(models)

			if n := one[int](f, "SELECT count(1) FROM triage_decisions WHERE withheld OR tier <> 'embedded'"); n != 0 {
				t.Errorf("%d decisions wait, or rest on the model", n)
			}
			if one[int](f, "SELECT count(1) FROM proposals") == 0 {
				t.Error("nothing is proposed without the model")
			}
			open := one[int](f, "SELECT count(1) FROM triage_decisions WHERE wanted_at IS NOT NULL")
			why := one[string](f, "SELECT degraded FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = 'l@x'")
			good := slices.ContainsFunc(forGood, func(k llm.Kind) bool { return strings.Contains(why, "t1: "+string(k)) })
			if !strings.HasPrefix(why, "t1: ") || good != (open == 0) {
				t.Errorf("%d messages wait, and the decision is degraded by %q", open, why)
			}
			fake.Recover()
			f.onceWith(restarted(t, fake.Models()))
			f.settled(2)
			if n := one[int](f, "SELECT count(1) FROM triage_decisions d WHERE jsonb_array_length(answers) > 0"); n == 0 {
				t.Error("no message was ever asked about")
			}
			if nonlocal := identified || fault == modeltest.RemoteAnswer || fault == modeltest.Redirect; nonlocal != one[bool](f, "SELECT model_refused_at IS NOT NULL AND model_refused <> '' FROM triage_schedules") {
				t.Errorf("the schedule shows the refusal %q", one[string](f, "SELECT model_refused FROM triage_schedules"))
			}
		})
	}
}

func TestOneOfTwoServersIsUnavailable(t *testing.T) {
	t.Parallel()
	first, second := modeltest.New(t, modeltest.Config{}), modeltest.New(t, modeltest.Config{Model: "larger"})
	config := first.Models()
	config.Servers["second"] = second.Models().Servers["test"]
	for _, tier := range []string{"t2a", "t2b"} {
		config.Tiers[tier] = llm.TierConfig{Server: "second", Model: "larger"}
	}
	f, models := asking(t, config)
	second.Fail(modeltest.Loading)
	f.deliver("", personal("l@x").raw())

	f.onceWith(models)

	row := one[[]string](f, "SELECT ARRAY[tier, degraded, wanted[1]] FROM triage_decisions WHERE NOT withheld")
	if !slices.Equal(row, []string{"t1", "t2a: unavailable", "t2a"}) {
		t.Errorf("tier, degraded and wanted are %q, want what the server that is there answered", row)
	}
	if states := one[string](f, "SELECT models::text FROM triage_schedules"); !strings.Contains(states, `"usable": false`) || !strings.Contains(states, `"usable": true`) {
		t.Errorf("the models are %s, want one that can be asked and one that cannot", states)
	}
	second.Recover()
	f.onceWith(restarted(t, config))
	f.settled(1)
	if tier := one[string](f, "SELECT tier FROM triage_decisions"); tier == "t1" || tier == "embedded" {
		t.Errorf("the decision rests on %s, want the second server's", tier)
	}
}

// TestMailIsDecidedOnceDespiteRandomFaults has servers fail at random while mail
// arrives and processes restart.
func TestMailIsDecidedOnceDespiteRandomFaults(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 11))
	fake := modeltest.New(t, modeltest.Config{})
	f, _ := asking(t, fake.Models())
	f.known()
	faults := slices.DeleteFunc(modeltest.Faults(), func(fault modeltest.Fault) bool { return fault == modeltest.Silent || fault == modeltest.Huge })
	delivered := 0
	for range 8 {
		models := restarted(t, fake.Models())
		f.onceWith(models)
		for range 2 {
			for range 1 + random.IntN(6) {
				delivered++
				if random.IntN(4) == 0 {
					f.deliver("", newsletter(fmt.Sprintf("n%d@x", delivered)).raw())
				} else {
					f.deliver("", personal(fmt.Sprintf("l%d@x", delivered)).raw())
				}
			}
			fake.FailNext(random.IntN(5), faults[random.IntN(len(faults))])
			f.onceWith(models)
		}
	}
	fake.Recover()
	f.onceWith(restarted(t, fake.Models()))

	f.settled(delivered)
	if one[int](f, "SELECT count(1) FROM triage_decisions WHERE tier <> 'embedded'") == 0 || one[int](f, "SELECT count(1) FROM proposals") == 0 {
		t.Error("nothing rests on a model, or nothing was proposed")
	}
}

// TestNewMailInterruptsQuestions has a server that does not answer until new
// mail was decided and the wait was over.
func TestNewMailInterruptsQuestions(t *testing.T) {
	t.Parallel()
	answers := make(chan struct{})
	answer := sync.OnceFunc(func() { close(answers) })
	t.Cleanup(answer)
	asked := make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) })
	fake := modeltest.New(t, modeltest.Config{Answer: func(r modeltest.Request) modeltest.Reply {
		ask()
		<-answers
		return modeltest.First(r)
	}})
	f, models := asking(t, fake.Models())
	const backlog = 5
	for i := range backlog {
		f.deliver("", personal(fmt.Sprintf("l%d@x", i)).raw())
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	e := f.engine(func(c *engine.Config) { models(c); c.Withhold = time.Millisecond })
	go func() { ended <- e.Run(ctx) }()
	<-asked

	f.deliver("", personal("new@x").raw())

	f.until("SELECT EXISTS (SELECT FROM triage_messages WHERE header_id = 'new@x')")
	f.until("SELECT count(1) = $1 FROM triage_decisions WHERE degraded LIKE '%late%' AND NOT withheld", backlog)
	if n := one[int](f, "SELECT count(1) FROM triage_decisions WHERE answers <> '[]'"); n != 0 {
		t.Errorf("%d messages have answers of a server that gave none", n)
	}
	answer()
	f.until("SELECT count(1) = $1 FROM triage_decisions WHERE tier <> 'embedded'", backlog+1)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	f.settled(backlog + 1)
}

// TestRecoveredServerIsAskedWithoutNewMail checks recovery while nothing
// happens in the mailbox.
func TestRecoveredServerIsAskedWithoutNewMail(t *testing.T) {
	t.Parallel()
	fake := modeltest.New(t, modeltest.Config{})
	f, models := asking(t, fake.Models())
	f.deliver("", personal("l@x").raw())
	fake.Fail(modeltest.Loading)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	e := f.engine(func(c *engine.Config) { models(c); c.Retry = time.Second })
	go func() { ended <- e.Run(ctx) }()
	f.until("SELECT EXISTS (SELECT FROM triage_decisions WHERE degraded LIKE 't1: unavailable%')")

	fake.Recover()

	f.until("SELECT EXISTS (SELECT FROM triage_decisions WHERE tier <> 'embedded' AND degraded = '')")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	f.settled(1)
}

func TestTwoProcessesAskOnce(t *testing.T) {
	t.Parallel()
	fake := modeltest.New(t, modeltest.Config{})
	f, models := asking(t, fake.Models())
	const messages = 20
	for i := range messages {
		f.deliver("", personal(fmt.Sprintf("l%d@x", i)).raw())
	}
	var all sync.WaitGroup
	for _, process := range []func(*engine.Config){models, restarted(t, fake.Models())} {
		e := f.engine(process)
		all.Go(func() {
			if err := e.Once(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()

	f.settled(messages)
	asked := map[string]int{}
	for _, r := range fake.Requests() {
		asked[r.System+r.User]++
	}
	for _, n := range asked {
		if n > 1 {
			t.Errorf("a question was asked %d times", n)
		}
	}
}
