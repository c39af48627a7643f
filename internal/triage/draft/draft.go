// Package draft has a language model write text for the owner of an account:
// the summary of a message, and the draft of a reply. It owns the prompts and
// the sanitising of the answers. It does not call servers, and decides neither
// whether a text is wanted nor its use.
//
// A model receives text and returns text. It has no influence on the
// recipients, subject and links of a reply: anything in its text that resembles
// a link or an address is removed.
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

	"github.com/countersign-dev/countersign/internal/mail/message/quote"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/visible"
)

// Kind is the kind of a text.
type Kind string

// The kinds.
const (
	// Summary is at most three lines about a message.
	Summary Kind = "summary"
	// Reply is the draft of a reply.
	Reply Kind = "draft"
)

// When is the condition under which a text is written automatically.
type When string

// The conditions. OnRequest is the default of an account.
const (
	OnRequest When = "on_request"
	// Wanted is for messages that wait for their owner, and for drafts that a
	// decision wants.
	Wanted When = "wanted"
)

// From is the choice of the mail that is the example for drafts, in addition to
// the listed mail.
type From string

// The choices. FromNone is the default of an account.
const (
	FromNone From = "off"
	// FromRecipient is mail that the owner sent to the recipient of the draft.
	FromRecipient From = "recipient"
	// FromFolder is mail of the owner in a folder.
	FromFolder From = "folder"
)

// Settings are the owner's settings for texts.
type Settings struct {
	Summaries When `json:"summaries,omitzero"`
	Drafts    When `json:"drafts,omitzero"`
	// Examples are Message-IDs, without angle brackets, of sent mail whose
	// style drafts imitate.
	Examples []string `json:"examples,omitempty"`
	// ExamplesFrom selects further examples, and ExamplesFolder is the folder of
	// FromFolder.
	ExamplesFrom   From   `json:"examples_from,omitzero"`
	ExamplesFolder string `json:"examples_folder,omitzero"`
	// Signature is appended to every draft unchanged.
	Signature string `json:"signature,omitzero"`
}

// Limits of settings and prompts.
const (
	MaxExamples  = 5
	MaxSignature = 1000
	// MaxNote limits the owner's note for a reply.
	MaxNote = 1000

	maxSubject = 300
	maxBody    = 6000
	maxExample = 1200
)

// Examples returns the first texts that can be examples, without the words of
// others.
func Examples(bodies []string) (examples []string) {
	for _, body := range bodies {
		if own := quote.Own(body); own != "" && len(examples) < MaxExamples {
			examples = append(examples, own)
		}
	}
	return examples
}

// Source is the input of a text.
type Source struct {
	// From, Subject and Body are those of the message. They are data of a
	// stranger.
	From, Subject, Body string
	// Examples are bodies of mail that the owner sent, and Note is the owner's
	// wish for a reply. Both are for drafts.
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

// form is the form of a kind's answer: texts under fixed names, which keep the
// grammar small.
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

// Question returns the question for a model. The message is between two
// unpredictable marks, which are removed from the message itself.
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

// without removes every occurrence of a mark from a text, including those that
// appear when others are removed.
func without(text, mark string) string {
	for strings.Contains(text, mark) {
		text = strings.ReplaceAll(text, mark, "")
	}
	return text
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// schema returns the JSON Schema of the answer, with its members in the order
// of writing.
func (f form) schema() json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i, name := range f.names {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%s":{"type":"string","maxLength":%d}`, name, f.most)
	}
	names, _ := json.Marshal(f.names) // a list of texts cannot fail
	fmt.Fprintf(&b, `},"required":%s,"additionalProperties":false}`, names)
	return json.RawMessage(b.String())
}

// ErrEmpty is returned if a model wrote nothing that can be kept.
var ErrEmpty = errors.New("the model wrote no text")

// Text sanitises an answer: plain text without links, addresses and invisible
// characters. The answer must match the schema of the question.
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
