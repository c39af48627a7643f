package openapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/slot"
)

// CheckParameters checks a request's path, query and headers. It returns the
// query. The error is an *envelope.InvalidError.
func (o *Operation) CheckParameters(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, check.Invalid("/query", envelope.RuleSyntax, "is not a valid query string")
	}
	var found check.Problems
	for name, values := range query {
		known := slices.ContainsFunc(o.parameters, func(p parameter) bool { return p.in == "query" && p.name == name })
		switch {
		case !known:
			found.Add("/query"+check.Pointer(name), envelope.RuleUnknownField, "is not a parameter of this operation")
		case len(values) > 1:
			found.Add("/query/"+name, envelope.RuleDuplicateKey, "occurs more than once; keep one")
		}
	}
	for _, p := range o.parameters {
		p.check(p.values(r, query), &found)
	}
	return query, found.Err()
}

func (p parameter) values(r *http.Request, query url.Values) []string {
	switch p.in {
	case "path":
		return []string{r.PathValue(p.name)}
	case "query":
		return query[p.name]
	}
	return r.Header.Values(p.name)
}

func (p parameter) check(values []string, found *check.Problems) {
	at := "/" + p.in + "/" + p.name
	if len(values) == 0 {
		if p.required {
			found.Add(at, envelope.RuleRequired, "is required; add it")
		}
		return
	}
	var value any = values[0]
	if p.kind == "integer" {
		if _, err := strconv.ParseInt(values[0], 10, 64); err != nil {
			found.Add(at, envelope.RuleType, "must be an integer")
			return
		}
		value = json.Number(values[0])
	}
	if err := Unstorable(at, value); err != nil {
		_ = found.Below("", err) // which is an *envelope.InvalidError
		return
	}
	// A parameter is short, so that its check ends soon.
	_ = addFailures(context.Background(), found, at, p.schema, value)
}

// CheckBody checks a JSON body against the operation's schema. The error is an
// *envelope.InvalidError or the context's.
func (o *Operation) CheckBody(ctx context.Context, body []byte) error {
	doc, err := readBody(ctx, body)
	if err != nil {
		return err
	}
	var found check.Problems
	if err := addFailures(ctx, &found, "", o.body, doc); err != nil {
		return err
	}
	return found.Err()
}

// readBody reads a body strictly.
func readBody(ctx context.Context, body []byte) (doc any, err error) {
	err = slot.Reading(ctx, len(body), func() error {
		if err := check.JSON(body); err != nil {
			return err
		}
		var err error
		if doc, err = schema.Decode(body); err != nil {
			return check.Invalid("", envelope.RuleSyntax, "must be one JSON value")
		}
		return nil
	})
	return doc, err
}

// HasMedia reports whether a request declares a body of the operation's media
// type in UTF-8.
func (o *Operation) HasMedia(r *http.Request) bool {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	return err == nil && media == o.Media && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// Unstorable returns an *envelope.InvalidError for a text in a JSON value that
// PostgreSQL cannot store: not UTF-8, or with the character U+0000.
func Unstorable(at string, value any) error {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return check.Invalid(at, envelope.RuleEncoding, "must be UTF-8")
		}
		if strings.ContainsRune(v, 0) {
			return check.Invalid(at, envelope.RuleNUL, "must not contain the character U+0000")
		}
	case []any:
		for i, one := range v {
			if err := Unstorable(at+"/"+strconv.Itoa(i), one); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, one := range v {
			if err := cmp.Or(Unstorable(at, name), Unstorable(at+check.Pointer(name), one)); err != nil {
				return err
			}
		}
	}
	return nil
}

// addFailures checks the value at a pointer and adds its field errors. The error
// is the context's.
func addFailures(ctx context.Context, found *check.Problems, at string, s *schema.Schema, value any) error {
	failures, err := s.Check(ctx, value)
	if errors.Is(err, schema.ErrCost) {
		found.Add(at, envelope.RuleSize, "takes too much work to check; send less at once")
		return nil
	}
	for _, f := range failures {
		addFailure(found, at+check.Pointer(f.At...), f.Keyword)
	}
	return err
}

// ruleSchema is broken by a value that breaks a keyword without a rule of its
// own.
const ruleSchema envelope.Rule = "schema"

// addFailure adds the field errors of one failed keyword. Their text is our own,
// because the library's may quote the value.
func addFailure(found *check.Problems, at string, keyword jsonschema.ErrorKind) {
	switch k := keyword.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			found.Add(at+check.Pointer(name), envelope.RuleRequired, "is required; add it")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			found.Add(at+check.Pointer(name), envelope.RuleUnknownField, "is not a field of this object")
		}
	case *kind.Type:
		found.Add(at, envelope.RuleType, "must be %s", strings.Join(k.Want, " or "))
	case *kind.Enum:
		found.Add(at, envelope.RuleEnum, "must be %s", alternatives(k.Want))
	case *kind.Const:
		found.Add(at, envelope.RuleEnum, "must be %s", alternatives([]any{k.Want}))
	case *kind.Pattern:
		found.Add(at, envelope.RulePattern, "must look like %s", k.Want)
	case *kind.Format:
		found.Add(at, envelope.RuleFormat, "must be a %s", k.Want)
	case *kind.MinLength:
		found.Add(at, envelope.RuleMinLength, "must have at least %d characters", k.Want)
	case *kind.MaxLength:
		found.Add(at, envelope.RuleMaxLength, "must have at most %d characters", k.Want)
	case *kind.MinItems:
		found.Add(at, "min_items", "must have at least %d items", k.Want)
	case *kind.MaxItems:
		found.Add(at, envelope.RuleMaxItems, "must have at most %d items", k.Want)
	case *kind.UniqueItems:
		found.Add(at, envelope.RuleDuplicateKey, "must not repeat an item")
	case *kind.Minimum:
		found.Add(at, check.RuleMinimum, "must be at least %s", k.Want.RatString())
	case *kind.Maximum:
		found.Add(at, check.RuleMaximum, "must be at most %s", k.Want.RatString())
	default:
		found.Add(at, ruleSchema, "breaks a rule of the operation's schema")
	}
}

// alternatives lists the values that a schema allows, as a sentence does.
func alternatives(allowed []any) string {
	texts := make([]string, len(allowed))
	for i, v := range allowed {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, " or ")
}
