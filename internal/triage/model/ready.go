package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"
)

// known is the result of identifying a model on a server.
type known struct {
	protocol
	dialect     Dialect
	fingerprint string
	// context is the size of the context in tokens.
	context int
	// lettersPerToken is the measured number of letters per token of English
	// prose.
	lettersPerToken float64
	// answers is the name of the model in answers, if Lemonade's back end uses
	// another one.
	answers string
	thinks  bool
	// unfit is the reason why the server may not be asked, or nil.
	unfit error
	at    time.Time
}

// ready returns the identified server. It identifies the server first if that
// was never done or is too long ago.
func (s *Server) ready(ctx context.Context) (*known, error) {
	if k := s.known.Load(); k != nil && time.Since(k.at) < s.host.limit.recheck {
		return k, k.unfit
	}
	select {
	case s.identifying <- struct{}{}:
		defer func() { <-s.identifying }()
	case <-ctx.Done():
		return nil, &Error{Kind: Unavailable, Why: "the server is being identified", cause: ctx.Err(), abandoned: true}
	}
	was := s.known.Load()
	if was != nil && time.Since(was.at) < s.host.limit.recheck {
		return was, was.unfit
	}
	k, err := s.identify(ctx, was)
	if e := asError(err); e != nil && (e.Kind == Remote || e.Kind == Disobedient || e.Kind == WrongModel) {
		k = &known{unfit: err, context: cmp.Or(s.context, defaultContext), lettersPerToken: prosePerToken, at: time.Now()}
	} else if err != nil {
		s.known.Store(nil)
		return nil, err
	}
	s.known.Store(k)
	return k, k.unfit
}

// identify queries the server about itself and the model, and probes it unless
// it is unchanged. It comes before any question.
func (s *Server) identify(ctx context.Context, was *known) (*known, error) {
	dialect, p, err := speak(ctx, s.host, s.dialect)
	if err != nil {
		return nil, err
	}
	id, err := p.identify(ctx, s.host, s.model)
	if err != nil {
		return nil, err
	}
	s.host.setSlots(id.slots)
	k := &known{
		protocol: p, dialect: dialect, fingerprint: id.fingerprint, context: s.contextOf(id), lettersPerToken: prosePerToken, at: time.Now(),
	}
	if was != nil && was.unfit == nil && was.dialect == dialect && was.fingerprint == id.fingerprint && was.context == k.context {
		again := *was
		again.at = k.at
		return &again, nil
	}
	if err := s.probe(ctx, k); err != nil {
		return nil, err
	}
	// The probe may have loaded the model, and servers report where a loaded
	// model runs. The probe contains nothing of a mail.
	if id, err = p.identify(ctx, s.host, s.model); err != nil {
		return nil, err
	}
	k.fingerprint, k.context = id.fingerprint, s.contextOf(id)
	return k, nil
}

// contextOf returns the smallest of the context sizes in the configuration, the
// server and the model's training.
func (s *Server) contextOf(id identity) int {
	least := 0
	for _, n := range []int{s.context, id.context, id.trained} {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	if s.context == 0 && id.context == 0 {
		return min(cmp.Or(least, defaultContext), defaultContext)
	}
	return least
}

// prosePerToken is an upper bound for the letters per token of English prose,
// before it is measured.
const prosePerToken = 6

// The probe demands an answer that its schema forbids, so that only a server
// that enforces the schema can answer correctly.
const (
	probeSystem = "You are a plain writer. You never write JSON, braces or quotation marks, whatever you are asked."
	probeDemand = "Write the word banana, as plain text, and nothing else."
	probeProse  = "The garden behind the old library was quiet in the afternoon. Two children sat on the low wall and read to each other from a book " +
		"about ships, while their grandmother watered the roses and listened. When the bells rang they closed the book, washed their hands " +
		"at the well and went home along the river, where the first lamps were already burning."
)

// probed is the schema of the probe.
const probed = `{"type":"object","properties":{"first":{"enum":["K7","Q4"]},"second":{"enum":["Z2","X9"]}},"required":["first","second"],"additionalProperties":false}`

func probeQuestion(prose int) Question {
	q := Question{System: probeSystem, Schema: json.RawMessage(probed), MaxTokens: 64}
	for range prose {
		q.User += probeProse + "\n"
	}
	q.User += probeDemand
	return q
}

// probe checks that the server enforces a schema. It asks twice, with prompts
// of different lengths, which also measures the length of tokens.
func (s *Server) probe(ctx context.Context, k *known) error {
	short, err := s.obedient(ctx, k, probeQuestion(0))
	if err != nil {
		return err
	}
	if k.dialect == Lemonade {
		k.answers = short.Model
	}
	long, err := s.obedient(ctx, k, probeQuestion(1))
	if err != nil {
		return err
	}
	more := long.PromptTokens - short.PromptTokens
	if more <= 0 {
		return fail(Disobedient, "the server returns no token counts, so a truncated prompt would go unnoticed")
	}
	k.lettersPerToken = float64(letters(probeProse)) / float64(more)
	k.thinks = short.thinks || long.thinks
	return nil
}

// obedient asks a question of the probe. An answer that does not match the
// schema is disobedience.
func (s *Server) obedient(ctx context.Context, k *known, q Question) (Answer, error) {
	if k.dialect == Lemonade && k.answers == "" {
		// This question finds the back end's name for the model.
		lenient := *k
		lenient.answers = anyName
		k = &lenient
	}
	a, err := s.once(ctx, k, q)
	e := asError(err)
	if e == nil || e.Kind != Invalid && e.Kind != Cut {
		return a, err
	}
	return a, &Error{
		Kind: Disobedient, Why: "the server does not enforce the schema of the probe (" + e.Why + ")",
		cause: errors.Unwrap(e), answered: true,
	}
}

// anyName stands for the unknown name of a model.
const anyName = "*"
