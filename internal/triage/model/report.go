package model

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Overflow is a server's behaviour for a prompt that exceeds the context.
type Overflow string

// The behaviours. A server that truncates prompts is only sent prompts that
// certainly fit.
const (
	OverflowRefused Overflow = "refused"
	OverflowCut     Overflow = "cut silently"
	OverflowUnknown Overflow = "unknown"
)

// Report is the result of testing a model on a server, with questions that have
// nothing to do with mail.
type Report struct {
	Server  string   `json:"server"`
	URL     string   `json:"url"`
	Model   string   `json:"model"`
	Tiers   []string `json:"tiers"`
	Dialect Dialect  `json:"dialect"`
	// Usable reports whether the server may be asked; otherwise Kind and Why
	// are the reason.
	Usable bool   `json:"usable"`
	Kind   Kind   `json:"kind,omitzero"`
	Why    string `json:"why,omitzero"`
	// Advice holds recommendations.
	Advice []string `json:"advice,omitempty"`

	Reachable bool `json:"reachable"`
	Local     bool `json:"local"`
	// Obeys reports whether the server enforces a schema.
	Obeys bool `json:"obeys_schema"`
	Slots int  `json:"slots"`
	// Context is the size by configuration and server, in tokens; Accepted is
	// the longest prompt that was read whole.
	Context  int      `json:"context_tokens"`
	Accepted int      `json:"accepted_tokens"`
	Overflow Overflow `json:"overflow"`
	Thinks   bool     `json:"thinks"`
	// Cached is the number of prompt tokens from the cache at the second time;
	// -1 if the server does not report it.
	Cached   int  `json:"cached_tokens"`
	Logprobs bool `json:"logprobs"`
	// The latencies are for a pack of Pack messages, as a tier asks.
	Pack  int     `json:"pack"`
	P50MS float64 `json:"latency_p50_ms"`
	P95MS float64 `json:"latency_p95_ms"`
	// HundredMS is the time for 100 messages in such packs over all slots.
	HundredMS float64 `json:"hundred_messages_ms"`
	// shorter reports whether a prompt that fits the context was not read
	// whole.
	shorter bool
}

// Reports tests every server and model of the set, one after another. After the
// end of ctx the rest is reported as unavailable.
func (s *Set) Reports(ctx context.Context) []Report {
	var list []Report
	done := make(map[*Server]int)
	for _, name := range Tiers() {
		t, ok := s.tiers[name]
		if !ok {
			continue
		}
		if at, seen := done[t.Server]; seen {
			list[at].Tiers = append(list[at].Tiers, name)
			continue
		}
		done[t.Server] = len(list)
		r := t.report(ctx)
		r.Tiers = []string{name}
		list = append(list, r)
	}
	return list
}

// report tests one model.
func (t Tier) report(ctx context.Context) Report {
	s := t.Server
	r := Report{Server: s.host.name, URL: s.host.url, Model: s.model, Dialect: s.dialect, Pack: t.Pack, Cached: -1, Overflow: OverflowUnknown, Slots: s.Slots()}
	err := s.Ready(ctx)
	if e := asError(err); e != nil {
		r.fail(e)
		return r
	}
	k := s.known.Load()
	r.Usable, r.Reachable, r.Local, r.Obeys = true, true, true, true
	r.Dialect, r.Slots, r.Context, r.Thinks = k.dialect, s.Slots(), k.context, k.thinks
	for _, look := range []func(context.Context, *known, *Report) error{s.lookAtCache, s.lookAtContext, s.lookAtOverflow, t.lookAtLatency} {
		if e := asError(look(ctx, k, &r)); e != nil {
			s.observe(e)
			r.fail(e)
			return r
		}
	}
	if s.context > k.context {
		r.Advice = append(r.Advice, fmt.Sprintf("The configured context has %d tokens, that of the server %d: the smaller one limits questions.", s.context, k.context))
	}
	if r.Pack < t.Pack {
		r.Advice = append(r.Advice, fmt.Sprintf("The context is short for packs of %d messages of usual length; %d fit well.", t.Pack, r.Pack))
	}
	r.advise()
	return r
}

// fail records why a server may not be asked.
func (r *Report) fail(e *Error) {
	r.Usable, r.Kind, r.Why = false, e.Kind, e.Why
	r.Reachable = e.Kind != Unavailable || e.answered
	r.Local = r.Reachable && e.Kind != Remote
	switch e.Kind {
	case Unavailable:
		r.Advice = append(r.Advice, "Start the server, and check its address: "+r.URL+".")
	case WrongModel:
		r.Advice = append(r.Advice, "Load the model on the server, or configure the model that it has.")
	case Remote:
		r.Advice = append(r.Advice, remoteAdvice(e.Refusal))
	case Disobedient:
		r.Advice = append(r.Advice, "Use a server that enforces response_format json_schema; a model on the NPU may need another back end.")
	case TooLong:
		r.Advice = append(r.Advice, fmt.Sprintf("Give the server a context of %d tokens per slot, or configure a smaller context.", r.Context))
	case Cut, Invalid:
		r.Advice = append(r.Advice, "Use another model or server: this one does not follow the schema for a pack of messages.")
	}
}

func remoteAdvice(refusal Refusal) string {
	switch refusal {
	case RefusedAddress:
		return "Use an address of this machine, or name the network of a server of your own under networks."
	case RefusedRedirect:
		return "Write the address that the server leads to, if it is one of your own."
	case RefusedModel, RefusedAnswer:
	}
	return "Use a model that runs on the server's own machine."
}

// advise adds recommendations for a usable server.
func (r *Report) advise() {
	if r.Overflow == OverflowCut {
		r.Advice = append(r.Advice, "The server silently truncates prompts that are too long; answers to them are rejected by their token counts.")
	}
	if r.shorter {
		r.Advice = append(r.Advice, fmt.Sprintf("The server reads at most %d tokens of a prompt; set the context to this number.", r.Accepted))
	}
	if r.Thinks {
		r.Advice = append(r.Advice, "The model thinks before it answers, which only costs time here; disable thinking on the server.")
	}
	if r.Cached == 0 {
		r.Advice = append(r.Advice, "The server does not cache the beginning of prompts; check its prefix cache.")
	}
	if !r.Logprobs {
		r.Advice = append(r.Advice, "The server returns no log-probabilities; the confidence of answers is estimated.")
	}
	if strings.HasPrefix(r.URL, "http://") && !loopbackURL(r.URL) {
		r.Advice = append(r.Advice, "Mail crosses the network unencrypted; use https:// or an encrypted network.")
	}
}

// lookAtCache asks the same question twice.
func (s *Server) lookAtCache(ctx context.Context, k *known, r *Report) error {
	q := probeQuestion(2)
	q.Choices = true
	for range 2 {
		a, err := s.once(ctx, k, q)
		if err != nil {
			return err
		}
		r.Cached, r.Logprobs = a.CachedTokens, len(a.Tokens) > 0
		r.Accepted = max(r.Accepted, a.PromptTokens)
	}
	return nil
}

// proseTokens estimates the tokens of the probe's prose.
func (k *known) proseTokens() float64 { return float64(letters(probeProse)) / k.lettersPerToken }

// lookAtContext asks with prompts that fill the context, half of it, and so on,
// until one is read whole.
func (s *Server) lookAtContext(ctx context.Context, k *known, r *Report) error {
	const reserve = 200 // for the rest of the question and the answer
	for size := k.context - reserve; size > r.Accepted; size /= 2 {
		a, err := s.once(ctx, k, probeQuestion(int(float64(size)/k.proseTokens())))
		if err == nil {
			r.Accepted = a.PromptTokens
			return nil
		}
		if e := asError(err); e.Kind != TooLong && e.Kind != Cut {
			return err
		}
		r.shorter = true
	}
	return nil
}

// lookAtOverflow sends a prompt that is too long, without the check that
// prevents that.
func (s *Server) lookAtOverflow(ctx context.Context, k *known, r *Report) error {
	wide := *k
	wide.context = k.context * 2
	if _, isOllama := k.protocol.(ollama); isOllama {
		wide.protocol = ollamaContext{context: k.context}
	}
	a, err := s.once(ctx, &wide, probeQuestion(int(1.3*float64(k.context)/k.proseTokens())))
	e := asError(err)
	switch {
	case e == nil && a.PromptTokens > k.context:
		// The server has more context than requested.
	case e == nil, e.Kind == Cut, e.Kind == TooLong && !e.answered:
		r.Overflow = OverflowCut
	case e.Kind == TooLong:
		r.Overflow = OverflowRefused
	case e.Kind == Unavailable && !e.answered:
		return err
	}
	return nil
}

// ollamaContext requests a context that is shorter than the prompt.
type ollamaContext struct {
	ollama
	context int
}

func (o ollamaContext) encode(q Question, model string, _ int) ([]byte, error) {
	return o.ollama.encode(q, model, o.context)
}

// samples is the number of latency measurements, after one question that warms
// the cache.
const samples = 10

// lookAtLatency asks about packs of messages of the usual length, as many as
// fit into half of the context.
func (t Tier) lookAtLatency(ctx context.Context, k *known, r *Report) error {
	const each = 30 // tokens of a message in addition to its prose, with its answer
	r.Pack = min(t.Pack, max(1, int(float64(k.context/2)/(2*k.proseTokens()+each))))
	q := packQuestion(r.Pack)
	var took []time.Duration
	for i := range samples + 1 {
		a, err := t.once(ctx, k, q(i))
		if err != nil {
			return err
		}
		if i > 0 {
			took = append(took, a.Took)
		}
	}
	slices.Sort(took)
	r.P50MS, r.P95MS = ms(took[len(took)/2]), ms(took[int(math.Ceil(0.95*float64(len(took))))-1])
	calls := math.Ceil(100 / float64(r.Pack))
	r.HundredMS = math.Ceil(calls/float64(r.Slots)) * r.P50MS
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// packQuestion returns questions about n texts, each with its own beginning
// after a common prefix.
func packQuestion(n int) func(i int) Question {
	var properties, required []string
	for i := range n {
		properties = append(properties, fmt.Sprintf(`"m%d":{"enum":["R","C","D","P"]}`, i+1))
		required = append(required, fmt.Sprintf(`"m%d"`, i+1))
	}
	schema := fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s],"additionalProperties":false}`, strings.Join(properties, ","), strings.Join(required, ","))
	return func(i int) Question {
		q := Question{
			System: "For each text, answer with R if it asks for something, C if it promises something, D if it brings something, P if it proposes something.",
			Schema: json.RawMessage(schema), MaxTokens: 16 + 12*n, Choices: true,
		}
		for m := range n {
			q.User += fmt.Sprintf("m%d: Text %d. %s %s\n", m+1, i*n+m, probeProse, probeProse)
		}
		return q
	}
}
