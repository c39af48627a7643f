package schema

import (
	"context"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// object checks the keywords for objects.
func (e *evaluation) object(ctx context.Context, s *jsonschema.Schema, v map[string]any, notes *evaluated) bool {
	fits := true
	if s.MinProperties != nil && len(v) < *s.MinProperties {
		fits = e.fail(&kind.MinProperties{Got: len(v), Want: *s.MinProperties})
	}
	if s.MaxProperties != nil && len(v) > *s.MaxProperties {
		return e.fail(&kind.MaxProperties{Got: len(v), Want: *s.MaxProperties})
	}
	if missing := e.missing(ctx, v, s.Required); missing != nil {
		fits = e.fail(&kind.Required{Missing: missing})
	}
	fits = e.also(fits, func() bool { return e.dependencies(ctx, s, v, notes) })
	fits = e.also(fits, func() bool { return e.members(ctx, s, v, notes) })
	if s.PropertyNames != nil {
		fits = e.also(fits, func() bool { return e.names(ctx, s, v) })
	}
	return fits
}

// missing returns the first required names that an object lacks.
func (e *evaluation) missing(ctx context.Context, v map[string]any, required []string) (names []string) {
	e.spend(ctx, len(required)/2)
	for _, name := range required {
		if _, ok := v[name]; ok {
			continue
		}
		if names = append(names, name); len(names) == maxFailures || e.enough() {
			break
		}
	}
	return names
}

// dependencies checks the requirements of members that are present.
func (e *evaluation) dependencies(ctx context.Context, s *jsonschema.Schema, v map[string]any, notes *evaluated) bool {
	fits := e.spend(ctx, len(s.Dependencies)+len(s.DependentSchemas)+len(s.DependentRequired))
	for name, asked := range s.Dependencies {
		if _, ok := v[name]; !ok {
			continue
		}
		switch asked := asked.(type) {
		case *jsonschema.Schema:
			fits = e.also(fits, func() bool { return e.same(ctx, asked, v, notes) })
		case []string:
			if missing := e.missing(ctx, v, asked); missing != nil {
				fits = e.fail(&kind.Dependency{Prop: name, Missing: missing})
			}
		}
	}
	for name, sub := range s.DependentSchemas {
		if _, ok := v[name]; ok {
			fits = e.also(fits, func() bool { return e.same(ctx, sub, v, notes) })
		}
	}
	for name, asked := range s.DependentRequired {
		if _, ok := v[name]; !ok {
			continue
		}
		if missing := e.missing(ctx, v, asked); missing != nil {
			fits = e.fail(&kind.DependentRequired{Prop: name, Missing: missing})
		}
	}
	return fits
}

// members checks properties, patternProperties and additionalProperties.
func (e *evaluation) members(ctx context.Context, s *jsonschema.Schema, v map[string]any, notes *evaluated) bool {
	if s.Properties == nil && s.PatternProperties == nil && s.AdditionalProperties == nil {
		return true
	}
	fits := true
	var unknown []string
	for name, one := range v {
		if !e.spend(ctx, 1) || !fits && e.enough() {
			return false
		}
		known := false
		if sub, ok := s.Properties[name]; ok {
			known = true
			fits = e.below(ctx, sub, one, name) && fits
		}
		for re, sub := range s.PatternProperties {
			matches, checked := e.match(ctx, re, name)
			if e.stopped != nil {
				return false
			}
			known = known || matches
			if matches && checked {
				fits = e.below(ctx, sub, one, name) && fits
			}
		}
		switch additional := s.AdditionalProperties.(type) {
		case bool:
			if !known && !additional && len(unknown) < maxFailures {
				unknown = append(unknown, name)
			}
			known = true
		case *jsonschema.Schema:
			if !known {
				fits = e.below(ctx, additional, one, name) && fits
			}
			known = true
		}
		if known {
			notes.name(name)
		}
	}
	if s.AdditionalProperties != nil {
		notes.everyName()
	}
	if unknown != nil {
		return e.fail(&kind.AdditionalProperties{Properties: unknown})
	}
	return fits
}

// names checks propertyNames.
func (e *evaluation) names(ctx context.Context, s *jsonschema.Schema, v map[string]any) bool {
	for name := range v {
		if !e.quietly(ctx, s.PropertyNames, name, nil) {
			return e.fail(&kind.PropertyNames{Property: name})
		}
	}
	return true
}
