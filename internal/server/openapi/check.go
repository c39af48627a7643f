package openapi

import (
	"bytes"
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
)

// MaxErrors is the most field errors that one answer lists.
const MaxErrors = 33

// maxNameLength is the longest name, in bytes, that an error's pointer repeats.
const maxNameLength = 64

// CheckParameters checks a request's path, query and headers. It returns the
// query. The error is an *envelope.InvalidError.
func (o *Operation) CheckParameters(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, Invalid("/query", "syntax", "is not a query of names and values")
	}
	var fields []envelope.FieldError
	for name, values := range query {
		known := slices.ContainsFunc(o.parameters, func(p parameter) bool { return p.in == "query" && p.name == name })
		switch {
		case !known:
			fields = append(fields, envelope.FieldError{Pointer: "/query" + pointer(name), Rule: envelope.RuleUnknownField, Message: "is not a parameter of this operation"})
		case len(values) > 1:
			fields = append(fields, envelope.FieldError{Pointer: "/query/" + name, Rule: envelope.RuleDuplicateKey, Message: "occurs more than once; keep one"})
		}
	}
	for _, p := range o.parameters {
		fields = append(fields, p.check(p.values(r, query))...)
	}
	return query, InvalidFields(fields)
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

func (p parameter) check(values []string) []envelope.FieldError {
	at := "/" + p.in + "/" + p.name
	if len(values) == 0 {
		if p.required {
			return []envelope.FieldError{{Pointer: at, Rule: envelope.RuleRequired, Message: "is required; add it"}}
		}
		return nil
	}
	var value any = values[0]
	if p.kind == "integer" {
		if _, err := strconv.ParseInt(values[0], 10, 64); err != nil {
			return []envelope.FieldError{{Pointer: at, Rule: envelope.RuleType, Message: "must be an integer"}}
		}
		value = json.Number(values[0])
	}
	if fields := Unstorable(at, value); fields != nil {
		return fields
	}
	return fieldErrorsOf(at, p.schema.Validate(value))
}

// CheckBody checks a JSON body against the operation's schema. The error is an
// *envelope.InvalidError.
func (o *Operation) CheckBody(body []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return Invalid("", envelope.RuleSyntax, "must be one JSON value")
	}
	if fields := Unstorable("", doc); fields != nil {
		return InvalidFields(fields)
	}
	return InvalidFields(fieldErrorsOf("", o.body.Validate(doc)))
}

// HasMedia reports whether a request declares a body of the operation's media
// type in UTF-8.
func (o *Operation) HasMedia(r *http.Request) bool {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	return err == nil && media == o.Media && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// Unstorable returns the errors of text in a JSON value that PostgreSQL cannot
// store: not UTF-8, or with the character U+0000.
func Unstorable(at string, value any) []envelope.FieldError {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return []envelope.FieldError{{Pointer: at, Rule: envelope.RuleEncoding, Message: "must be UTF-8"}}
		}
		if strings.ContainsRune(v, 0) {
			return []envelope.FieldError{{Pointer: at, Rule: envelope.RuleNUL, Message: "must not hold the character U+0000"}}
		}
	case []any:
		for i, one := range v {
			if fields := Unstorable(at+"/"+strconv.Itoa(i), one); fields != nil {
				return fields
			}
		}
	case map[string]any:
		for name, one := range v {
			if fields := Unstorable(at, name); fields != nil {
				return fields
			}
			if fields := Unstorable(at+pointer(name), one); fields != nil {
				return fields
			}
		}
	}
	return nil
}

// fieldErrorsOf returns the field errors of a failed validation.
func fieldErrorsOf(at string, err error) []envelope.FieldError {
	if err == nil {
		return nil
	}
	found, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []envelope.FieldError{{Pointer: at, Rule: "schema", Message: "cannot be checked"}}
	}
	var fields []envelope.FieldError
	leaves(found, func(leaf *jsonschema.ValidationError) { fields = append(fields, fieldErrors(at, leaf)...) })
	return fields
}

func leaves(e *jsonschema.ValidationError, visit func(*jsonschema.ValidationError)) {
	if len(e.Causes) == 0 {
		visit(e)
		return
	}
	for _, cause := range e.Causes {
		leaves(cause, visit)
	}
}

// fieldErrors returns the field errors of one failed keyword. Their text is our
// own, because the library's may quote the value.
func fieldErrors(at string, e *jsonschema.ValidationError) []envelope.FieldError {
	at += pointer(e.InstanceLocation...)
	each := func(names []string, rule envelope.Rule, message string) []envelope.FieldError {
		fields := make([]envelope.FieldError, len(names))
		for i, name := range names {
			fields[i] = envelope.FieldError{Pointer: at + pointer(name), Rule: rule, Message: message}
		}
		return fields
	}
	one := func(rule envelope.Rule, format string, args ...any) []envelope.FieldError {
		return []envelope.FieldError{{Pointer: at, Rule: rule, Message: fmt.Sprintf(format, args...)}}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return each(k.Missing, envelope.RuleRequired, "is required; add it")
	case *kind.AdditionalProperties:
		return each(k.Properties, envelope.RuleUnknownField, "is not a field of this object")
	case *kind.Type:
		return one(envelope.RuleType, "must be %s", strings.Join(k.Want, " or "))
	case *kind.Enum:
		return one(envelope.RuleEnum, "must be %s", alternatives(k.Want))
	case *kind.Const:
		return one(envelope.RuleEnum, "must be %s", alternatives([]any{k.Want}))
	case *kind.Pattern:
		return one(envelope.RulePattern, "must look like %s", k.Want)
	case *kind.Format:
		return one(envelope.RuleFormat, "must be a %s", k.Want)
	case *kind.MinLength:
		return one(envelope.RuleMinLength, "must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return one(envelope.RuleMaxLength, "must have at most %d characters", k.Want)
	case *kind.MinItems:
		return one("min_items", "must have at least %d items", k.Want)
	case *kind.MaxItems:
		return one(envelope.RuleMaxItems, "must have at most %d items", k.Want)
	case *kind.UniqueItems:
		return one(envelope.RuleDuplicateKey, "must not have an item twice")
	case *kind.Minimum:
		return one("minimum", "must be at least %s", k.Want.RatString())
	case *kind.Maximum:
		return one("maximum", "must be at most %s", k.Want.RatString())
	}
	return one("schema", "breaks a rule of the operation's schema")
}

// alternatives lists the values that a schema allows, as a sentence does.
func alternatives(allowed []any) string {
	texts := make([]string, len(allowed))
	for i, v := range allowed {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, " or ")
}

// pointer returns names as a JSON Pointer. It stops before a name that is too
// long to repeat.
func pointer(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		if len(name) > maxNameLength {
			break
		}
		b.WriteString("/" + envelope.EscapePointer(name))
	}
	return b.String()
}

// Invalid returns an *envelope.InvalidError with one field error.
func Invalid(at string, rule envelope.Rule, message string) error {
	return InvalidFields([]envelope.FieldError{{Pointer: at, Rule: rule, Message: message}})
}

// InvalidFields returns an *envelope.InvalidError with up to MaxErrors of the
// field errors, or nil if there are none.
func InvalidFields(fields []envelope.FieldError) error {
	if len(fields) == 0 {
		return nil
	}
	return &envelope.InvalidError{Fields: fields[:min(len(fields), MaxErrors)]}
}
