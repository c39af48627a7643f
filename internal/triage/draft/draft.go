// Package draft has a language model write text for the owner of an account: the
// summary of a message, and the draft of an answer. It owns what the model is
// shown and what of its answer is kept. It asks no server itself, and decides
// neither whether a text is wanted nor what becomes of it.
//
// A model gets text and gives text. Recipients, subject and links of an answer are
// none of its business: what looks like a link or an address in its text is left
// out.
package draft

import (
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/visible"
)

// Kind is what is written.
type Kind string

// The kinds.
const (
	// Summary is at most three lines about a message.
	Summary Kind = "summary"
	// Reply is the draft of an answer.
	Reply Kind = "draft"
)

// When says when a text is written without being asked for.
type When string

// The times. OnRequest is what an account has unless it says otherwise.
const (
	OnRequest When = "on_request"
	// Wanted is for messages that wait for their owner, and drafts of answers for
	// those of which a decision wants one.
	Wanted When = "wanted"
)

// Settings are what the owner of an account has set about texts.
type Settings struct {
	Summaries When `json:"summaries,omitzero"`
	Drafts    When `json:"drafts,omitzero"`
	// Examples are Message-IDs, without angle brackets, of mail that the owner sent
	// and whose manner drafts take.
	Examples []string `json:"examples,omitempty"`
	// Signature stands at the end of every draft, as it is.
	Signature string `json:"signature,omitzero"`
}

// Bounds of settings and of what a model is shown.
const (
	MaxExamples  = 5
	MaxSignature = 1000
	// MaxNote bounds what a person says that an answer should say.
	MaxNote = 1000

	maxSubject = 300
	maxBody    = 6000
	maxExample = 1200
)

// Source is what a text is written from.
type Source struct {
	// From, Subject and Body are of the message. They are data of a stranger.
	From, Subject, Body string
	// Examples are bodies of mail that the owner sent, and Note what the owner wants
	// an answer to say. Both are for drafts.
	Examples []string
	Note     string
}

// Prompt returns the name and version of the prompt of a kind.
func (k Kind) Prompt() string { return string(k) + ".v1" }

var (
	//go:embed prompts/summary.v1.txt
	summaryPrompt string
	//go:embed prompts/draft.v1.txt
	replyPrompt string
)

// form is what a model answers with for a kind: texts under fixed names, which keep
// a grammar small.
type form struct {
	system string
	names  []string
	most   int // characters of each text
	tokens int
	join   string
}

func (k Kind) form() (form, error) {
	switch k {
	case Summary:
		return form{summaryPrompt, []string{"line1", "line2", "line3"}, 160, 240, "\n"}, nil
	case Reply:
		return form{replyPrompt, []string{"p1", "p2", "p3", "p4"}, 400, 700, "\n\n"}, nil
	}
	return form{}, fmt.Errorf("no text of the kind %q is written", k)
}

// Question returns what a model is asked. The message stands between two marks
// that nobody can know before, and that are taken out of the message.
func (k Kind) Question(s Source) (model.Question, error) {
	f, err := k.form()
	if err != nil {
		return model.Question{}, err
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return model.Question{}, err
	}
	return f.question(k, s, hex.EncodeToString(random[:])), nil
}

func (f form) question(k Kind, s Source, mark string) model.Question {
	data := func(text string, most int) string {
		text, _ = visible.Cut(strings.TrimSpace(visible.Plain(text)), most)
		return without(text, mark)
	}
	var b strings.Builder
	if k == Reply {
		for i, text := range s.Examples[:min(len(s.Examples), MaxExamples)] {
			fmt.Fprintf(&b, "An earlier e-mail of the person, between the marks (%d):\n%s\n%s\n%s\n\n", i+1, mark, data(text, maxExample), mark)
		}
	}
	fmt.Fprintf(&b, "The mark is %s. The e-mail:\n%s\nFrom: %s\nSubject: %s\n\n%s\n%s\n",
		mark, mark, oneLine(data(s.From, maxSubject)), oneLine(data(s.Subject, maxSubject)), data(s.Body, maxBody), mark)
	if note := data(s.Note, MaxNote); k == Reply && note != "" {
		fmt.Fprintf(&b, "The person wants the answer to say: %s\n", oneLine(note))
	}
	return model.Question{System: f.system, User: b.String(), Schema: f.schema(), MaxTokens: f.tokens}
}

// without takes every occurrence of a mark out of a text, also those that appear
// when others are taken out.
func without(text, mark string) string {
	for strings.Contains(text, mark) {
		text = strings.ReplaceAll(text, mark, "")
	}
	return text
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// schema returns the JSON Schema of the answer, its members in the order in which
// they are to be written.
func (f form) schema() json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i, name := range f.names {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%s":{"type":"string","maxLength":%d}`, name, f.most)
	}
	names, _ := json.Marshal(f.names) // texts alone
	fmt.Fprintf(&b, `},"required":%s,"additionalProperties":false}`, names)
	return json.RawMessage(b.String())
}

// ErrEmpty says that a model wrote nothing that can be kept.
var ErrEmpty = errors.New("the model wrote no text")

// Text returns what is kept of an answer: plain text without links, addresses and
// what does not show. The answer is valid by the schema of the question.
func (k Kind) Text(answer json.RawMessage, s Settings) (string, error) {
	f, err := k.form()
	if err != nil {
		return "", err
	}
	var members map[string]string
	if err := json.Unmarshal(answer, &members); err != nil {
		return "", errors.New("the answer of the model is not made of texts")
	}
	var parts []string
	for _, name := range f.names {
		text := visible.Plain(members[name])
		if k == Summary {
			text = oneLine(text)
		}
		if text = strings.TrimSpace(Unlinked(text)); text != "" {
			text, _ = visible.Cut(text, 4*f.most)
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return "", ErrEmpty
	}
	if signature := strings.TrimSpace(s.Signature); k == Reply && signature != "" {
		parts = append(parts, signature)
	}
	return strings.Join(parts, f.join), nil
}

// Kinds returns every kind.
func Kinds() []Kind { return []Kind{Summary, Reply} }

// Known reports whether a kind is one of Kinds.
func (k Kind) Known() bool { return slices.Contains(Kinds(), k) }
