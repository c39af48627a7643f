package model

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/schema"
)

// check returns an answer once it is verified: to the question, by the model,
// and with the whole prompt read.
func (s *Server) check(ctx context.Context, k *known, q Question, r reply) (Answer, error) {
	switch {
	case r.remote:
		return Answer{}, refuse(RefusedAnswer, "the answer was made by another host")
	case r.finish == "length":
		return Answer{}, fail(Cut, "the answer exceeded its token limit")
	case r.finish != "stop":
		return Answer{}, fail(Invalid, "the answer ended early")
	case !sameModel(r.model, s.model) && k.answers != anyName && (k.answers == "" || r.model != k.answers):
		return Answer{}, fail(WrongModel, "another model answered")
	case r.prompt <= 0 || r.completion <= 0:
		return Answer{}, fail(Invalid, "the answer has no token counts")
	case r.prompt+r.completion >= k.context:
		return Answer{}, fail(TooLong, "the prompt filled the context and may have been truncated")
	case r.prompt < k.leastTokens(q):
		return Answer{}, fail(TooLong, "the server counted fewer tokens than the prompt has: it was truncated")
	}
	if err := valid(ctx, q.Schema, []byte(r.text)); err != nil {
		return Answer{}, err
	}
	return Answer{
		Text: json.RawMessage(r.text), Model: r.model, Tokens: r.tokens,
		PromptTokens: r.prompt, CompletionTokens: r.completion, CachedTokens: r.cached, thinks: r.thinking,
	}, nil
}

// valid checks the text of an answer: one JSON value, without duplicate names
// in an object, that matches the schema.
func valid(ctx context.Context, by json.RawMessage, text []byte) error {
	if check.JSON(text) != nil {
		return fail(Invalid, "invalid JSON in the answer")
	}
	compiled, err := schema.NewText(by).Compile(ctx)
	if err != nil {
		return &Error{Kind: Invalid, Why: "the question's schema cannot be used", cause: err}
	}
	value, err := schema.Decode(text)
	if err != nil {
		return fail(Invalid, "invalid JSON in the answer")
	}
	failures, err := compiled.Check(ctx, value)
	if err != nil {
		return &Error{Kind: Invalid, Why: "the answer could not be checked", cause: err}
	}
	if len(failures) > 0 {
		return fail(Invalid, "the answer does not match the schema")
	}
	return nil
}

// slack is the factor by which tokens may be longer than in English prose,
// which has about the longest tokens for most tokenizers.
const slack = 1.5

// leastTokens returns a lower bound for the tokens of a prompt: English prose
// has about the most letters per token, and runs of one letter, which have
// more, count as one.
func (k *known) leastTokens(q Question) int {
	return int(float64(letters(q.System)+letters(q.User)) / (slack * k.lettersPerToken))
}

// letters counts the runes of a text, with a run of equal ones as one.
func letters(text string) int {
	n, before := 0, utf8.RuneError
	for _, r := range text {
		if r != before || r == utf8.RuneError {
			n++
		}
		before = r
	}
	return n
}
