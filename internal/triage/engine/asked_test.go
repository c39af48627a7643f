package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/asker"
	"github.com/countersign-dev/countersign/internal/triage/engine"
	llm "github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// asking returns a fixture whose account leaves nearly everything open, and an
// option that makes an engine ask the models of a configuration.
func asking(t *testing.T, c llm.Config) (*fixture, func(*engine.Config)) {
	t.Helper()
	f := newFixture(t)
	f.put("work", func(a *account.Account) { a.Settings.Confident, a.Settings.Unsure = 0.999, 0.01 })
	return f, restarted(t, c)
}

// restarted returns an option that makes an engine ask models like a new
// process.
func restarted(t *testing.T, c llm.Config) func(*engine.Config) {
	t.Helper()
	models, err := asker.OpenModels(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(c *engine.Config) { c.Models = models }
}

// personal returns mail of a person, for which the rules prove no need of
// attention.
func personal(id string) testMail {
	return testMail{id: id, from: "Eve <eve@elsewhere.example>", to: owner, subject: "About the fence " + id, body: "Somebody should look at the fence " + id + " some day."}
}

func (f *fixture) onceWith(change func(*engine.Config)) {
	f.t.Helper()
	if err := f.engine(change).Once(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func TestOpenMailIsDecidedWithTheAnswers(t *testing.T) {
	t.Parallel()
	fake := modeltest.New(t, modeltest.Config{})
	f, models := asking(t, fake.Models())
	const messages = 10
	for i := range messages {
		f.deliver("", personal(fmt.Sprintf("l%d@x", i)).raw())
	}

	f.onceWith(models)
	asked := len(fake.Requests())
	f.onceWith(models)

	for _, c := range []struct {
		what, query string
		want        int
	}{
		{"decisions", "SELECT count(1) FROM triage_decisions", messages},
		{"decisions that rest on a model", "SELECT count(1) FROM triage_decisions WHERE tier IN ('t1', 't2a', 't2b') AND model = 'test-model' AND prompt <> '' AND reason = 'asked'", messages},
		{"messages that wait", "SELECT count(1) FROM triage_decisions WHERE wanted_at IS NOT NULL OR withheld OR wanted <> '{}' OR degraded <> ''", 0},
		{"decisions without a trace of an answer", `SELECT count(1) FROM triage_decisions WHERE NOT decision -> 'trace' @> '[{"rule": "t1"}]'`, 0},
		{"readings of models", "SELECT count(1) FROM triage_runs WHERE kind = 'asked' AND ended_at IS NOT NULL AND error IS NULL", 1},
		{"proposals beside their rows", "SELECT count(1) - (SELECT count(DISTINCT proposal_id) FROM triage_proposals) FROM proposals", 0},
	} {
		if n := one[int](f, c.query); n != c.want {
			t.Errorf("%d %s, want %d", n, c.what, c.want)
		}
	}
	if asked == 0 || len(fake.Requests()) != asked {
		t.Errorf("%d questions and then %d, want some and none more", asked, len(fake.Requests()))
	}
	if n := one[int](f, `SELECT count(1) FROM triage_schedules WHERE models @> '[{"server": "test", "usable": true}]'`); n != 1 {
		t.Errorf("the schedule shows no usable server: %s", one[string](f, "SELECT models::text FROM triage_schedules"))
	}
}

func TestMailIsAskedAboutWhenTheServerRecovers(t *testing.T) {
	t.Parallel()
	fake := modeltest.New(t, modeltest.Config{})
	f, models := asking(t, fake.Models())
	f.known()
	fake.Fail(modeltest.Dropped)
	f.deliver("", newsletter("n@x").raw())
	touched := f.deliver("", personal("touched@x").raw())
	f.deliver("", personal("l@x").raw())

	f.onceWith(models)

	if states := one[[]string](f, "SELECT array_agg(DISTINCT degraded) FROM triage_decisions WHERE wanted_at IS NOT NULL"); len(states) == 0 || !strings.HasPrefix(states[0], "t1: unavailable") {
		t.Errorf("decisions are degraded by %v, want all by t1: unavailable", states)
	}
	if n := one[int](f, "SELECT count(1) FROM triage_decisions WHERE withheld OR tier <> 'embedded'"); n != 0 {
		t.Errorf("%d decisions wait for a server that is gone, or rest on it", n)
	}
	if one[int](f, "SELECT count(1) FROM proposals") == 0 {
		t.Error("nothing is proposed without the server")
	}
	if err := os.Rename(touched, touched+"F"); err != nil {
		t.Fatal(err)
	}
	before := one[int](f, "SELECT count(1) FROM proposals")
	fake.Recover()
	f.onceWith(restarted(t, fake.Models()))

	if n := one[int](f, "SELECT count(1) FROM triage_decisions WHERE wanted_at IS NOT NULL"); n != 0 {
		t.Errorf("%d messages are still to be asked about", n)
	}
	for id, want := range map[string]string{"l@x": "t", "touched@x": "embedded"} {
		if tier := one[string](f, "SELECT tier FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = $1", id); !strings.HasPrefix(tier, want) || (want == "t") != (tier != "embedded") {
			t.Errorf("%s is decided by %s, want %s", id, tier, want)
		}
	}
	if n := one[int](f, "SELECT count(1) FROM proposals"); n < before {
		t.Errorf("%d proposals after %d", n, before)
	}
	if n := one[int](f, "SELECT count(1) - count(DISTINCT body::jsonb ->> 'external_id') FROM proposals"); n != 0 {
		t.Errorf("%d proposals were made twice", n)
	}
}
