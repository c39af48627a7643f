package rest

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

// The media types of bodies.
const (
	jsonType = "application/json"
	csvType  = "text/csv"
	formType = "application/x-www-form-urlencoded"
)

// maxErrors bounds the errors of one answer, maxPart the length of a name that
// is repeated in a pointer.
const (
	maxErrors = 33
	maxPart   = 64
)

// checkParameters holds a request's path, query and headers to what the
// operation says. It returns the query.
func (o *operation) checkParameters(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("/query", "syntax", "is not a query of names and values")
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
	return query, invalidFields(fields)
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
	if fields := unstorable(at, value); fields != nil {
		return fields
	}
	return broken(at, p.schema.Validate(value))
}

// checkBody holds a body to the operation's schema.
func (o *operation) checkBody(body []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return invalid("", envelope.RuleSyntax, "must be one JSON value")
	}
	if fields := unstorable("", doc); fields != nil {
		return invalidFields(fields)
	}
	return invalidFields(broken("", o.body.Validate(doc)))
}

// declares says that a request declares a body of a media type in UTF-8.
func declares(r *http.Request, want string) bool {
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := params["charset"]
	return err == nil && media == want && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// unstorable finds text that the database cannot keep.
func unstorable(at string, value any) []envelope.FieldError {
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
			if fields := unstorable(at+"/"+strconv.Itoa(i), one); fields != nil {
				return fields
			}
		}
	case map[string]any:
		for name, one := range v {
			if fields := unstorable(at, name); fields != nil {
				return fields
			}
			if fields := unstorable(at+pointer(name), one); fields != nil {
				return fields
			}
		}
	}
	return nil
}

// broken lists what a validation found.
func broken(at string, err error) []envelope.FieldError {
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

// fieldErrors says in our own words what a keyword found: the library's text
// may quote the value.
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
		return one(envelope.RuleEnum, "must be %s", words(k.Want))
	case *kind.Const:
		return one(envelope.RuleEnum, "must be %s", words([]any{k.Want}))
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

// words lists the values that a schema allows.
func words(allowed []any) string {
	texts := make([]string, len(allowed))
	for i, v := range allowed {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, " or ")
}

// pointer writes names as a JSON Pointer. It ends above a name that is too
// long to repeat.
func pointer(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		if len(name) > maxPart {
			break
		}
		b.WriteString("/" + envelope.EscapePointer(name))
	}
	return b.String()
}

func invalid(at string, rule envelope.Rule, message string) error {
	return invalidFields([]envelope.FieldError{{Pointer: at, Rule: rule, Message: message}})
}

func invalidFields(fields []envelope.FieldError) error {
	if len(fields) == 0 {
		return nil
	}
	return &envelope.InvalidError{Fields: fields[:min(len(fields), maxErrors)]}
}
