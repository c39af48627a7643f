// Package label owns the labels that the owner of a mail account describes:
// their definitions, the classifier that matches them, and their storage. Labels
// change nothing in a mailbox, and no decision of triage reads them. On mail of
// people a match is a proposal until its owner confirms it.
package label

import (
	"crypto/sha256"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

const (
	// maxLabels limits the labels of an account, maxWords and maxExamples the
	// words and the examples of one, and maxWord and maxDescription characters.
	maxLabels      = 50
	maxWords       = 50
	maxExamples    = 100
	maxWord        = 100
	maxDescription = 500
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// Definition describes the messages that get a label. An account's owner writes
// it; it contains no text of mail.
type Definition struct {
	Description string   `json:"description,omitzero"`
	Words       []string `json:"words"`
	// For and Against are messages that get the label, and that do not.
	For     []uuid.UUID `json:"for"`
	Against []uuid.UUID `json:"against"`
}

// ValidName returns an error unless a label can have a name. Names of action tags
// are reserved.
func ValidName(name string, actions map[string]tag.Action) error {
	_, reserved := tag.Registry(actions)[name]
	switch {
	case !nameForm.MatchString(name):
		return check.Invalid("/path/label", envelope.RuleFormat, "must be 1 to 40 of a-z, 0-9, - and _, and begin with a letter or a digit")
	case reserved || name == "action":
		return check.Invalid("/path/label", "reserved", "is reserved for action tags")
	}
	return nil
}

// normal returns a definition in its stored form.
func (d Definition) normal() Definition {
	d.Description = oneLine(d.Description)
	words := []string{}
	for _, w := range d.Words {
		words = append(words, strings.ToLower(oneLine(w)))
	}
	slices.Sort(words)
	d.Words, d.For, d.Against = slices.Compact(words), ids(d.For), ids(d.Against)
	return d
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func ids(all []uuid.UUID) []uuid.UUID {
	sorted := append([]uuid.UUID{}, all...)
	slices.SortFunc(sorted, func(a, b uuid.UUID) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(sorted)
}

// check checks a definition in its stored form.
func (d Definition) check() error {
	switch {
	case len(d.Words)+len(d.For) == 0 && len(terms(d.Description)) == 0:
		return check.Invalid("", envelope.RuleRequired, "a description, words or messages for the label are required")
	case utf8.RuneCountInString(d.Description) > maxDescription:
		return check.Invalid("/description", envelope.RuleMaxLength, "must have at most %d characters", maxDescription)
	case len(d.Words) > maxWords:
		return check.Invalid("/words", envelope.RuleMaxItems, "must be at most %d", maxWords)
	case len(d.For)+len(d.Against) > maxExamples:
		return check.Invalid("/for", envelope.RuleMaxItems, "messages for and against must be at most %d", maxExamples)
	case slices.ContainsFunc(d.For, func(id uuid.UUID) bool { return slices.Contains(d.Against, id) }):
		return check.Invalid("/against", "contradiction", "has a message that is also for the label")
	}
	for _, w := range append(slices.Clone(d.Words), d.Description) {
		if strings.ContainsRune(w, 0) || !utf8.ValidString(w) {
			return check.Invalid("", envelope.RuleFormat, "must be text without zero bytes")
		}
	}
	for _, w := range d.Words {
		if n := utf8.RuneCountInString(w); n < 2 || n > maxWord || len(split(w)) == 0 {
			return check.Invalid("/words", envelope.RuleFormat, "must be words or phrases of 2 to %d characters", maxWord)
		}
	}
	return nil
}

// digest identifies a definition in its stored form.
func (d Definition) digest() ([]byte, error) {
	raw, err := json.Marshal(d)
	sum := sha256.Sum256(raw)
	return sum[:], err
}
