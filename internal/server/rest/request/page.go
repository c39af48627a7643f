package request

import (
	"net/http"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// PageOf makes a page of up to limit+1 rows: the extra row means that there is
// a next page.
func PageOf[R, T any](rows []R, limit int, list string, show func(R) T, id func(R) envelope.ActionID) wire.Page[T] {
	p := wire.Page[T]{Items: make([]T, 0, min(len(rows), limit))}
	for i, r := range rows {
		if i == limit {
			p.NextCursor = new(WriteCursor(list, id(rows[i-1])))
			break
		}
		p.Items = append(p.Items, show(r))
	}
	return p
}

// Items answers with a list that has no pages.
func Items[T any](c *Call, all []T) error {
	return c.JSON(http.StatusOK, struct {
		Items []T `json:"items"`
	}{all})
}

// Map returns the list of convert's results, never nil.
func Map[A, B any](all []A, convert func(A) B) []B {
	made := make([]B, len(all))
	for i, a := range all {
		made[i] = convert(a)
	}
	return made
}

// SelectTools returns the source and the name of the tools that a source, a
// pattern such as source:name or *:name, or both select; "" is any. The error
// is an *envelope.InvalidError for the pointer at.
func SelectTools(source, pattern, at string) (wantSource, wantName string, err error) {
	if pattern == "" {
		return source, "", nil
	}
	key, err := policy.ParsePattern(pattern)
	if err != nil {
		return "", "", Invalid(at, envelope.RulePattern, "must be source:name, where either may be *")
	}
	if key.Source == "*" {
		key.Source = source
	}
	if source != "" && key.Source != source {
		return "", "", Invalid(at, "same", "names another source than the parameter source; send only one of them")
	}
	return key.Source, strings.TrimSuffix(key.Action, "*"), nil
}

// Same returns its argument, for lists whose items need no conversion.
func Same[T any](v T) T { return v }

// Summary reports whether the query asks for summaries of the items of a list.
func (c *Call) Summary() bool { return c.Query.Get("view") == "summary" }
