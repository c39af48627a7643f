package schema

import (
	"context"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// entry checks item i of the current array.
func (e *evaluation) entry(ctx context.Context, s *jsonschema.Schema, v any, i int) bool {
	return e.below(ctx, s, v, strconv.Itoa(i))
}

// array checks the keywords for arrays.
func (e *evaluation) array(ctx context.Context, s *jsonschema.Schema, v []any, notes *evaluated) bool {
	fits := true
	if s.MinItems != nil && len(v) < *s.MinItems {
		fits = e.fail(&kind.MinItems{Got: len(v), Want: *s.MinItems})
	}
	if s.MaxItems != nil && len(v) > *s.MaxItems {
		return e.fail(&kind.MaxItems{Got: len(v), Want: *s.MaxItems})
	}
	if s.UniqueItems && len(v) > 1 {
		fits = e.also(fits, func() bool { return e.unique(ctx, v) })
	}
	fits = e.also(fits, func() bool { return e.items(ctx, s, v, notes) })
	if s.Contains != nil {
		fits = e.also(fits, func() bool { return e.contains(ctx, s, v, notes) })
	}
	return fits
}

// items checks the items by position.
func (e *evaluation) items(ctx context.Context, s *jsonschema.Schema, v []any, notes *evaluated) bool {
	first, rest := s.PrefixItems, s.Items2020
	if s.DraftVersion < 2020 {
		switch items := s.Items.(type) {
		case *jsonschema.Schema:
			rest = items
		case []*jsonschema.Schema:
			first = items
			switch additional := s.AdditionalItems.(type) {
			case *jsonschema.Schema:
				rest = additional
			case bool:
				if !additional && len(v) > len(first) {
					return e.fail(&kind.AdditionalItems{Count: len(v) - len(first)})
				}
				if additional || len(v) <= len(first) {
					notes.everyItem()
				}
			}
		}
	}
	fits := true
	for i, one := range v {
		sub := rest
		if i < len(first) {
			sub = first[i]
		}
		if sub == nil {
			break
		}
		fits = e.entry(ctx, sub, one, i) && fits
		if !fits && e.enough() {
			return false
		}
	}
	notes.upTo(len(first))
	if rest != nil {
		notes.everyItem()
	}
	return fits
}

// contains checks contains, minContains and maxContains.
func (e *evaluation) contains(ctx context.Context, s *jsonschema.Schema, v []any, notes *evaluated) bool {
	found, before := 0, e.unchecked
	for i, one := range v {
		if !e.quietly(ctx, s.Contains, one, nil) {
			continue
		}
		found++
		if s.DraftVersion >= 2020 {
			notes.item(i)
		}
	}
	switch {
	case e.stopped != nil:
		return false
	case s.MinContains != nil && found < *s.MinContains:
		return e.fail(&kind.MinContains{Want: *s.MinContains})
	case s.MinContains == nil && found == 0:
		return e.fail(&kind.Contains{})
	case s.MaxContains != nil && found > *s.MaxContains && e.unchecked == before:
		return e.fail(&kind.MaxContains{Want: *s.MaxContains})
	}
	return true
}

// unique checks uniqueItems.
func (e *evaluation) unique(ctx context.Context, v []any) bool {
	seen := make(map[string]int, len(v))
	for i, one := range v {
		key, ok := e.key(ctx, nil, one)
		if !ok {
			return false
		}
		if first, taken := seen[string(key)]; taken {
			return e.fail(&kind.UniqueItems{Duplicates: [2]int{first, i}})
		}
		seen[string(key)] = i
	}
	return true
}
