package schema

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/countersign-dev/countersign/internal/slot"
)

// evaluation is one check of a value.
type evaluation struct {
	// allowed is the maximum number of steps, left the remainder.
	allowed, left int
	// stopped is the reason why the check ended early.
	stopped  error
	failures []Failure
	// quiet is above zero while failures are not recorded.
	quiet int
	// unchecked counts matches with regular expressions that no engine supports.
	// A value that fits while the count rises only may fit; a value that does
	// not fit never depends on it.
	unchecked int
	path      []string
	// before is the number of steps of earlier checks of the same request. done
	// ends the slot for long work, or is nil while the check is short.
	before int
	done   func()
}

const (
	// interval is the number of steps between two checks of the context.
	interval = 1 << 10
	// shortSteps is the number of steps after which the checks of a request
	// become long work: about 1 ms.
	shortSteps = 16 << 10
)

// spend takes steps. It returns false if the check must end.
func (e *evaluation) spend(ctx context.Context, steps int) bool {
	if e.stopped != nil {
		return false
	}
	if steps > e.left {
		e.stopped = ErrCost
		return false
	}
	taken := e.before + e.allowed - e.left
	e.left -= steps
	if taken/interval == (taken+steps)/interval {
		return true
	}
	if e.stopped = ctx.Err(); e.stopped == nil && e.done == nil && taken+steps > shortSteps {
		e.done, e.stopped = slot.Begin(ctx)
	}
	return e.stopped == nil
}

// end releases the slot for long work.
func (e *evaluation) end() {
	if e.done != nil {
		e.done()
	}
}

// fail records a failure of the value at the current path. It returns false.
func (e *evaluation) fail(keyword jsonschema.ErrorKind) bool {
	if !e.enough() {
		e.failures = append(e.failures, Failure{slices.Clone(e.path), keyword})
	}
	return false
}

// enough reports whether further failures would not be recorded.
func (e *evaluation) enough() bool {
	return e.stopped != nil || e.quiet > 0 || len(e.failures) >= maxFailures
}

// also returns whether both fit. next runs only if it may find failures that are
// recorded.
func (e *evaluation) also(fits bool, next func() bool) bool {
	if !fits && e.enough() {
		return false
	}
	return next() && fits
}

// quietly reports whether a value fits, without recording failures.
func (e *evaluation) quietly(ctx context.Context, s *jsonschema.Schema, v any, notes *evaluated) bool {
	e.quiet++
	defer func() { e.quiet-- }()
	return e.same(ctx, s, v, notes)
}

// same checks the current value against another schema.
func (e *evaluation) same(ctx context.Context, s *jsonschema.Schema, v any, notes *evaluated) bool {
	if notes == nil {
		return e.value(ctx, s, v, nil)
	}
	own := &evaluated{}
	if !e.value(ctx, s, v, own) || !e.spend(ctx, own.size()) {
		return false
	}
	notes.merge(own)
	return true
}

// below checks a value within the current one.
func (e *evaluation) below(ctx context.Context, s *jsonschema.Schema, v any, name string) bool {
	e.path = append(e.path, name)
	fits := e.value(ctx, s, v, nil)
	e.path = e.path[:len(e.path)-1]
	return fits
}

// value reports whether a value fits a schema. It adds the evaluated members and
// items to notes.
func (e *evaluation) value(ctx context.Context, s *jsonschema.Schema, v any, notes *evaluated) bool {
	if !e.spend(ctx, 1) {
		return false
	}
	if s.Bool != nil {
		return *s.Bool || e.fail(&kind.FalseSchema{})
	}
	if !e.kind(ctx, s, v) || !e.listed(ctx, s, v) || !e.format(ctx, s, v) {
		return false
	}
	own := notes
	if s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil {
		own = &evaluated{}
	}
	fits := s.Ref == nil || e.same(ctx, s.Ref, v, own)
	if s.Ref != nil && s.DraftVersion < 2019 {
		return fits // which ignores the siblings of a reference
	}
	fits = e.also(fits, func() bool { return e.contents(ctx, s, v, own) })
	fits = e.also(fits, func() bool { return e.combined(ctx, s, v, own) })
	fits = e.also(fits, func() bool { return e.conditional(ctx, s, v, own) })
	fits = e.also(fits, func() bool { return e.unevaluated(ctx, s, v, own) })
	if fits && own != notes {
		notes.merge(own)
	}
	return fits && e.stopped == nil
}

// contents checks the keywords for one type of value.
func (e *evaluation) contents(ctx context.Context, s *jsonschema.Schema, v any, notes *evaluated) bool {
	switch v := v.(type) {
	case map[string]any:
		return e.object(ctx, s, v, notes)
	case []any:
		return e.array(ctx, s, v, notes)
	case string:
		return e.text(ctx, s, v)
	case json.Number:
		return e.number(ctx, s, v)
	}
	return true
}

// combined checks not, allOf, anyOf and oneOf.
func (e *evaluation) combined(ctx context.Context, s *jsonschema.Schema, v any, notes *evaluated) bool {
	fits, before := true, e.unchecked
	if s.Not != nil && e.quietly(ctx, s.Not, v, nil) && e.unchecked == before {
		fits = e.fail(&kind.Not{})
	}
	for _, sub := range s.AllOf {
		fits = e.also(fits, func() bool { return e.same(ctx, sub, v, notes) })
	}
	if len(s.AnyOf) > 0 {
		fits = e.also(fits, func() bool { return e.anyOf(ctx, s, v, notes) })
	}
	if len(s.OneOf) > 0 {
		fits = e.also(fits, func() bool { return e.oneOf(ctx, s, v, notes) })
	}
	return fits
}

// anyOf records the failures of all branches if none fits.
func (e *evaluation) anyOf(ctx context.Context, s *jsonschema.Schema, v any, notes *evaluated) bool {
	before, fits := len(e.failures), false
	for _, sub := range s.AnyOf {
		switch {
		case fits && notes == nil:
			return true
		case fits: // members and items of all fitting branches are evaluated
			e.quietly(ctx, sub, v, notes)
		case e.same(ctx, sub, v, notes):
			fits = true
			e.failures = e.failures[:before]
		}
	}
	return fits
}

// oneOf records the failures of all branches if none fits.
func (e *evaluation) oneOf(ctx context.Context, s *jsonschema.Schema, v any, notes *evaluated) bool {
	before, first, sure := len(e.failures), -1, false
	for i, sub := range s.OneOf {
		unchecked := e.unchecked
		switch {
		case first >= 0:
			if !e.quietly(ctx, sub, v, notes) || e.unchecked > unchecked {
				continue
			}
			if sure {
				return e.fail(&kind.OneOf{Subschemas: []int{first, i}})
			}
			first, sure = i, true
		case e.same(ctx, sub, v, notes):
			first, sure = i, e.unchecked == unchecked
			e.failures = e.failures[:before]
		}
	}
	return first >= 0
}

// conditional checks if, then and else.
func (e *evaluation) conditional(ctx context.Context, s *jsonschema.Schema, v any, notes *evaluated) bool {
	if s.If == nil {
		return true
	}
	next, before := s.Else, e.unchecked
	if e.quietly(ctx, s.If, v, notes) {
		next = s.Then
	}
	if e.unchecked > before && next == s.Then { // either may apply
		for _, sub := range []*jsonschema.Schema{s.Then, s.Else} {
			if sub != nil {
				e.quietly(ctx, sub, v, notes)
			}
		}
		return e.stopped == nil
	}
	return next == nil || e.same(ctx, next, v, notes)
}

// unevaluated checks the members and items that no other keyword evaluated.
func (e *evaluation) unevaluated(ctx context.Context, s *jsonschema.Schema, v any, notes *evaluated) bool {
	fits := true
	switch v := v.(type) {
	case map[string]any:
		if s.UnevaluatedProperties == nil {
			return true
		}
		for name, one := range v {
			if !notes.hasName(name) {
				fits = e.also(fits, func() bool { return e.below(ctx, s.UnevaluatedProperties, one, name) })
			}
		}
		notes.everyName()
		return fits && e.spend(ctx, len(v))
	case []any:
		if s.UnevaluatedItems == nil {
			return true
		}
		for i, one := range v {
			if !notes.hasItem(i) {
				fits = e.also(fits, func() bool { return e.entry(ctx, s.UnevaluatedItems, one, i) })
			}
		}
		notes.everyItem()
		return fits && e.spend(ctx, len(v))
	}
	return true
}
