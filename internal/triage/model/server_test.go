package model_test

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

func question() model.Question {
	return model.Question{
		System: "Answer by the schema.", User: "Is it a request? It has a subject, a sender and a text of a few lines.", MaxTokens: 32, Choices: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"m1":{"enum":["R","C"]},"m2":{"enum":["D","P"]}},"required":["m1","m2"],"additionalProperties":false}`),
	}
}

// dialects are the dialects of servers.
func dialects() []model.Dialect {
	return slices.DeleteFunc(model.Dialects(), func(d model.Dialect) bool { return d == model.Auto })
}

func wantKind(t *testing.T, err error, want model.Kind) {
	t.Helper()
	if e, ok := errors.AsType[*model.Error](err); !ok || e.Kind != want {
		t.Errorf("Ask() = %v, want the kind %s", err, want)
	}
}

func TestConform(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			modeltest.Conform(t, modeltest.New(t, modeltest.Config{Dialect: d, Context: 2048, Slots: 2}).Tier(t, "t1"))
		})
	}
}

func TestAskRejectsInvalidAnswers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"m1":"R"}`, `{"m1":"R","m2":"X"}`, `{"m1":"R","m2":"D","m2":"D"}`, `{"m1":"R","m2":"D"} and more`, `["R","D"]`,
		"```json\n{\"m1\":\"R\",\"m2\":\"D\"}\n```", `{"m1":"R","m2":"D","m3":"D"}`, `{"m1":"R","m2":"D"}{"m1":"R","m2":"D"}`, ` `,
	} {
		server := modeltest.New(t, modeltest.Config{Answer: func(modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: text} }})

		_, err := server.Tier(t, "t1").Ask(t.Context(), question())

		wantKind(t, err, model.Invalid)
	}
}

func TestAskWithFaults(t *testing.T) {
	t.Parallel()
	wants := map[modeltest.Fault]model.Kind{
		modeltest.Loading: model.Unavailable, modeltest.Full: model.Unavailable, modeltest.Silent: model.Unavailable,
		modeltest.Dropped: model.Unavailable, modeltest.DroppedHalfway: model.Unavailable, modeltest.Redirect: model.Remote,
		modeltest.Garbage: model.Invalid, modeltest.Huge: model.Invalid, modeltest.Cut: model.Cut, modeltest.Overflow: model.TooLong,
		modeltest.SilentCut: model.TooLong, modeltest.Uncounted: model.Invalid, modeltest.WrongModel: model.WrongModel,
		modeltest.Ignored: model.Invalid, modeltest.RemoteAnswer: model.Remote, modeltest.Thinking: "",
	}
	for _, d := range dialects() {
		for f, want := range wants {
			t.Run(string(d)+" "+string(f), func(t *testing.T) {
				t.Parallel()
				server := modeltest.New(t, modeltest.Config{Dialect: d})
				tier := server.Tier(t, "t1")
				if err := tier.Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
				if f == modeltest.Silent {
					tier.Hasten(20 * time.Millisecond)
				}
				server.Fail(f)
				q := question()
				q.User = strings.Repeat("These are lines of a letter that is long enough for a cut to show. ", 20)

				_, err := tier.Ask(t.Context(), q)

				switch {
				case want == "" && err != nil:
					t.Errorf("Ask() = %v, want an answer", err)
				case want != "":
					wantKind(t, err, want)
				}
			})
		}
	}
}

// TestProbe checks that a server that fails the probe is not asked.
func TestProbe(t *testing.T) {
	t.Parallel()
	for f, want := range map[modeltest.Fault]model.Kind{
		modeltest.Ignored: model.Disobedient, modeltest.Uncounted: model.Disobedient, modeltest.Garbage: model.Disobedient,
		modeltest.RemoteAnswer: model.Remote, modeltest.RemoteModel: model.Remote, modeltest.RemoteShown: model.Remote, modeltest.WrongModel: model.WrongModel,
		modeltest.Loading: model.Unavailable, modeltest.Redirect: model.Remote,
	} {
		for _, d := range dialects() {
			if f == modeltest.RemoteModel && d == model.LlamaServer || f == modeltest.RemoteShown && d != model.Ollama || f == modeltest.WrongModel && d == model.Lemonade {
				continue // not a fault: Lemonade's answers name the back end's model
			}
			t.Run(string(d)+" "+string(f), func(t *testing.T) {
				t.Parallel()
				server := modeltest.New(t, modeltest.Config{Dialect: d})
				server.Fail(f)
				tier := server.Tier(t, "t1")

				_, err := tier.Ask(t.Context(), question())

				wantKind(t, err, want)
				if asked := server.Requests(); len(asked) > 0 {
					t.Errorf("the server was asked %d questions", len(asked))
				}
				if is := tier.State(); is.Usable != (want == model.Unavailable) || is.Kind != want {
					t.Errorf("State() = %+v, want %s, and usable only if it may be there again", is, want)
				}
			})
		}
	}
}

// TestServerIsReplaced has a server stop and another one start in its place.
func TestServerIsReplaced(t *testing.T) {
	t.Parallel()
	server := modeltest.New(t, modeltest.Config{})
	c := server.Models()
	tier := open(t, c, model.Observer{}, time.Millisecond)
	if _, err := tier.Ask(t.Context(), question()); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	server.Close()

	_, err = tier.Ask(t.Context(), question())
	wantKind(t, err, model.Unavailable)
	listener, err := net.Listen("tcp", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	other := modeltest.New(t, modeltest.Config{})
	front := &http.Server{Handler: other.Handler()}
	go front.Serve(listener) // until it is closed
	t.Cleanup(func() { _ = front.Close() })

	for err = errors.New("not asked"); err != nil && t.Context().Err() == nil; {
		_, err = tier.Ask(t.Context(), question())
	}

	if got := other.Probes(); got != 2 || !tier.State().Usable || tier.State().Kind != "" {
		t.Errorf("the other server was probed with %d questions, want 2; State() = %+v", got, tier.State())
	}
}

func TestAskAgainAfterABrokenConnection(t *testing.T) {
	t.Parallel()
	for _, f := range []modeltest.Fault{modeltest.Dropped, modeltest.DroppedHalfway} {
		server := modeltest.New(t, modeltest.Config{})
		tier := server.Tier(t, "t1")
		if err := tier.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		probes := server.Probes()
		server.FailNext(1, f)

		_, err := tier.Ask(t.Context(), question())

		if err != nil {
			t.Errorf("Ask() with a fault %q = %v, want an answer", f, err)
		}
		if got := server.Probes(); got != 2*probes {
			t.Errorf("the server was probed %d times, want %d: another server may have come", got, 2*probes)
		}
	}
}

func TestBreaker(t *testing.T) {
	t.Parallel()
	t.Run("opens", func(t *testing.T) {
		t.Parallel()
		server := modeltest.New(t, modeltest.Config{})
		tier := open(t, server.Models(), model.Observer{}, time.Hour)
		if err := tier.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		server.Fail(modeltest.Loading)

		for range 10 {
			_, err := tier.Ask(t.Context(), question())
			wantKind(t, err, model.Unavailable)
		}

		if got := len(server.Requests()) + server.Probes() - 2; got != 3 {
			t.Errorf("the server was asked %d times, want 3", got)
		}
		if is := tier.State(); is.Usable || is.Kind != model.Unavailable {
			t.Errorf("State() = %+v, want unavailable", is)
		}
	})
	t.Run("closes, after the server was probed again", func(t *testing.T) {
		t.Parallel()
		server := modeltest.New(t, modeltest.Config{})
		tier := open(t, server.Models(), model.Observer{}, time.Millisecond)
		server.Fail(modeltest.Loading)
		for range 3 {
			_, err := tier.Ask(t.Context(), question())
			wantKind(t, err, model.Unavailable)
		}
		server.Recover()
		before := server.Probes()

		for tier.Ready(t.Context()) != nil && t.Context().Err() == nil {
			// The breaker is open.
		}

		if got := server.Probes() - before; got != 2 {
			t.Errorf("the server was probed with %d questions, want 2", got)
		}
	})
}

func open(t *testing.T, c model.Config, o model.Observer, breakerOpen time.Duration) model.Tier {
	t.Helper()
	set, err := model.OpenWith(c, o, breakerOpen, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	tier, _ := set.Tier("t1")
	return tier
}

// TestSlots checks that all tiers together have no more questions in flight
// than the server reports slots.
func TestSlots(t *testing.T) {
	t.Parallel()
	var inside, most atomic.Int32
	done := make(chan struct{})
	full := sync.OnceFunc(func() { close(done) })
	server := modeltest.New(t, modeltest.Config{Slots: 3, Answer: func(r modeltest.Request) modeltest.Reply {
		n := inside.Add(1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		if n == 3 {
			full()
		}
		<-done
		inside.Add(-1)
		return modeltest.First(r)
	}})
	c := server.Models()
	at := c.Servers["test"]
	at.Slots = 0
	c.Servers["test"] = at
	set, err := model.Open(c, model.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	errs := make(chan error)
	for i := range 12 {
		tier, _ := set.Tier(model.Tiers()[i%4])
		go func() {
			_, err := tier.Ask(t.Context(), question())
			errs <- err
		}()
	}

	for range 12 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}

	if got := most.Load(); got != 3 {
		t.Errorf("%d questions were in flight at once, want 3", got)
	}
}

// TestChangedModel checks that a server is probed again when it has another
// model of the same name.
func TestChangedModel(t *testing.T) {
	t.Parallel()
	server := modeltest.New(t, modeltest.Config{})
	set, err := model.OpenWith(server.Models(), model.Observer{}, time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	tier, _ := set.Tier("t1")
	for range 3 {
		if _, err := tier.Ask(t.Context(), question()); err != nil {
			t.Fatal(err)
		}
	}
	if got := server.Probes(); got != 2 {
		t.Errorf("the server was probed with %d questions, want 2 while it is the same", got)
	}

	server.Swap("another file")
	if _, err := tier.Ask(t.Context(), question()); err != nil {
		t.Fatal(err)
	}

	if got := server.Probes(); got != 4 {
		t.Errorf("the server was probed with %d questions, want 4 after a change", got)
	}
}

// TestAskedIsObserved checks that each question is reported once, without any
// text.
func TestAskedIsObserved(t *testing.T) {
	t.Parallel()
	server := modeltest.New(t, modeltest.Config{})
	var asked []model.Asked
	tier := open(t, server.Models(), model.Observer{Asked: func(a model.Asked) { asked = append(asked, a) }}, time.Hour)
	if _, err := tier.Ask(t.Context(), question()); err != nil {
		t.Fatal(err)
	}
	server.Fail(modeltest.Cut)
	_, err := tier.Ask(t.Context(), question())
	wantKind(t, err, model.Cut)

	if len(asked) != 2 || asked[0].Kind != "" || asked[0].PromptTokens == 0 || asked[1].Kind != model.Cut {
		t.Errorf("observed %+v", asked)
	}
	if strings.Contains(err.Error(), "m1") {
		t.Errorf("the error %q has text of the answer", err)
	}
}
