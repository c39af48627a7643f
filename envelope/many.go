package envelope

import "github.com/countersign-dev/countersign/envelope/internal/jsonscan"

const (
	// MaxItems bounds the proposals of one submission.
	MaxItems = 1000
	// MaxManyBytes is the largest text that holds several proposals.
	MaxManyBytes = 16 << 20
	// maxManyValues bounds the JSON values in such a text: a short value costs
	// many times its text to check.
	maxManyValues = 500_000
)

// Item is one of several proposals: either the proposal or its error.
type Item struct {
	Proposal *Proposal
	Err      *InvalidError
}

// ParseMany reads several proposals from an array, or from an object whose only
// field "items" is one. The problems of a proposal are in its item, with
// pointers from the start of the text (/items/3/risk, or /3/risk), and do not
// affect the others. The error, an *InvalidError, is for a text that is not a
// list of at most MaxItems in at most MaxManyBytes, has more than 500,000 JSON
// values in all, or is not JSON at all.
func ParseMany(raw []byte) ([]Item, error) {
	if len(raw) > MaxManyBytes {
		return nil, &InvalidError{[]FieldError{{"", RuleSize, "must be at most 16777216 bytes long; send several lists"}}}
	}
	r := reader{jsonscan.New(raw)}
	r.LimitValues(maxManyValues)
	items := r.list()
	r.End()
	if err := invalid("", r.Cut(0)); err != nil {
		return nil, err
	}
	return items, nil
}

// list reads the text around the items; each item has the limits of one
// envelope to itself.
func (r reader) list() (items []Item) {
	r.Limit(MaxDepth, MaxBytes)
	if r.Peek() == '[' {
		return r.items()
	}
	if !r.Open('{') {
		r.refuse(RuleType, "must be an array of envelopes, or an object with one in items")
		return nil
	}
	var seen fields
	for name, ok := r.Field(); ok; name, ok = r.Field() {
		switch string(name) {
		case "items":
			r.see(&seen, fieldItems)
			items = r.items()
		default:
			r.refuse(RuleUnknownField, "is not a field of a list; it has only items")
		}
	}
	r.need(seen, fieldItems, "items")
	return items
}

func (r reader) items() []Item {
	if !r.Open('[') {
		r.refuse(RuleType, "must be an array of envelopes")
		return nil
	}
	var items []Item
	outside := r.Problems()
	for r.Element() {
		if len(items) == MaxItems {
			r.Fail(string(RuleMaxItems), "is one too many; send at most 1000 at once")
			return nil
		}
		it := Item{Proposal: r.proposal()}
		if r.Failed() {
			return nil
		}
		if it.Err = invalid("", r.Cut(outside)); it.Err != nil {
			it.Proposal = nil
		}
		items = append(items, it)
	}
	return items
}
