package schema

import (
	"context"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// typeName returns the name of a value's type, or "" if it is not a JSON value.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return ""
}

// kind checks type.
func (e *evaluation) kind(ctx context.Context, s *jsonschema.Schema, v any) bool {
	name := typeName(v)
	if name == "" {
		return e.fail(&kind.InvalidJsonValue{})
	}
	if s.Types == nil || s.Types.IsEmpty() || hasType(*s.Types, name) {
		return true
	}
	if n, ok := v.(json.Number); ok && hasType(*s.Types, "integer") && e.isInteger(ctx, n) {
		return true
	}
	if e.enough() {
		return false
	}
	return e.fail(&kind.Type{Got: name, Want: s.Types.ToStrings()})
}

func hasType(types jsonschema.Types, name string) bool {
	var one jsonschema.Types
	one.Add(name)
	return types&one != 0
}

// listed checks const and enum.
func (e *evaluation) listed(ctx context.Context, s *jsonschema.Schema, v any) bool {
	if s.Const != nil && !e.equal(ctx, v, *s.Const) {
		return e.fail(&kind.Const{Got: v, Want: *s.Const})
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum.Values, func(one any) bool { return e.equal(ctx, v, one) }) {
		return e.fail(&kind.Enum{Got: v, Want: s.Enum.Values})
	}
	return e.stopped == nil
}

// format checks format.
func (e *evaluation) format(ctx context.Context, s *jsonschema.Schema, v any) bool {
	text, ok := v.(string)
	if s.Format == nil || !ok {
		return true
	}
	if !e.spend(ctx, 2+len(text)/bytesPerStep*4) {
		return false
	}
	validate := s.Format.Validate
	if s.Format.Name == "regex" {
		validate = isPattern
	}
	if err := validate(text); err != nil {
		return e.fail(&kind.Format{Want: s.Format.Name, Err: err})
	}
	return true
}

// isPattern checks the format regex. The library's own check would accept every
// text, since the expressions of schemas need that.
func isPattern(v any) error {
	_, err := compilePattern(v.(string))
	return err
}

// text checks the keywords for strings.
func (e *evaluation) text(ctx context.Context, s *jsonschema.Schema, v string) bool {
	fits := true
	if s.MinLength != nil || s.MaxLength != nil {
		if !e.spend(ctx, len(v)/bytesPerStep) {
			return false
		}
		length := utf8.RuneCountInString(v)
		if s.MinLength != nil && length < *s.MinLength {
			fits = e.fail(&kind.MinLength{Got: length, Want: *s.MinLength})
		}
		if s.MaxLength != nil && length > *s.MaxLength {
			fits = e.fail(&kind.MaxLength{Got: length, Want: *s.MaxLength})
		}
	}
	if s.Pattern == nil {
		return fits
	}
	if matches, _ := e.match(ctx, s.Pattern, v); !matches {
		return e.fail(&kind.Pattern{Want: s.Pattern.String()})
	}
	return fits
}

// number checks the keywords for numbers.
func (e *evaluation) number(ctx context.Context, s *jsonschema.Schema, v json.Number) bool {
	if s.Minimum == nil && s.Maximum == nil && s.ExclusiveMinimum == nil && s.ExclusiveMaximum == nil && s.MultipleOf == nil {
		return true
	}
	n, ok := e.rational(ctx, v)
	if !ok {
		return e.fail(&kind.InvalidJsonValue{})
	}
	fits := true
	if s.Minimum != nil && n.Cmp(s.Minimum) < 0 {
		fits = e.fail(&kind.Minimum{Got: n, Want: s.Minimum})
	}
	if s.Maximum != nil && n.Cmp(s.Maximum) > 0 {
		fits = e.fail(&kind.Maximum{Got: n, Want: s.Maximum})
	}
	if s.ExclusiveMinimum != nil && n.Cmp(s.ExclusiveMinimum) <= 0 {
		fits = e.fail(&kind.ExclusiveMinimum{Got: n, Want: s.ExclusiveMinimum})
	}
	if s.ExclusiveMaximum != nil && n.Cmp(s.ExclusiveMaximum) >= 0 {
		fits = e.fail(&kind.ExclusiveMaximum{Got: n, Want: s.ExclusiveMaximum})
	}
	if s.MultipleOf != nil && !new(big.Rat).Quo(n, s.MultipleOf).IsInt() {
		fits = e.fail(&kind.MultipleOf{Got: n, Want: s.MultipleOf})
	}
	return fits
}

func (e *evaluation) isInteger(ctx context.Context, n json.Number) bool {
	if !strings.ContainsAny(string(n), ".eE") {
		return true
	}
	r, ok := e.rational(ctx, n)
	return ok && r.IsInt()
}

// maxExponent and maxDigits bound the numbers that are compared, as
// envelope.Canonical does.
const (
	maxExponent = 400
	maxDigits   = 400
)

// rational returns a number. It returns false if the number is too costly to
// compute with.
func (e *evaluation) rational(ctx context.Context, n json.Number) (*big.Rat, bool) {
	const steps = 8
	text := string(n)
	if len(text) > maxDigits || !e.spend(ctx, steps+len(text)) {
		return nil, false
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		if power, err := strconv.Atoi(text[at+1:]); err != nil || power < -maxExponent || power > maxExponent {
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
}

// equal reports whether two JSON values are equal.
func (e *evaluation) equal(ctx context.Context, a, b any) bool {
	if !e.spend(ctx, 1) {
		return false
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, one := range a {
			if other, ok := b[name]; !ok || !e.equal(ctx, one, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, func(x, y any) bool { return e.equal(ctx, x, y) })
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		x, xok := e.rational(ctx, a)
		y, yok := e.rational(ctx, b)
		return xok && yok && x.Cmp(y) == 0
	case string:
		b, ok := b.(string)
		return ok && len(a) == len(b) && e.spend(ctx, len(a)/bytesPerStep) && a == b
	}
	return a == b
}

// key appends a text to dst that is the same for two values if and only if they
// are equal. It returns false if the check must end.
func (e *evaluation) key(ctx context.Context, dst []byte, v any) ([]byte, bool) {
	if !e.spend(ctx, 1) {
		return nil, false
	}
	ok := true
	switch v := v.(type) {
	case map[string]any:
		dst = append(dst, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			dst = append(strconv.AppendQuote(dst, name), ':')
			if dst, ok = e.key(ctx, dst, v[name]); !ok {
				return nil, false
			}
		}
		return append(dst, '}'), true
	case []any:
		dst = append(dst, '[')
		for _, one := range v {
			if dst, ok = e.key(ctx, dst, one); !ok {
				return nil, false
			}
			dst = append(dst, ',')
		}
		return append(dst, ']'), true
	case json.Number:
		n, ok := e.rational(ctx, v)
		if !ok {
			return append(dst, v...), e.stopped == nil
		}
		return append(dst, n.RatString()...), true
	case string:
		return strconv.AppendQuote(dst, v), e.spend(ctx, len(v)/bytesPerStep)
	case bool:
		return strconv.AppendBool(dst, v), true
	}
	return append(dst, "null"...), true
}
