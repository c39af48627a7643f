package events

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/broker"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// viewInvocations is the value of the query's view for a stream of the events
// of invocations in place of transitions.
const viewInvocations = "invocations"

// filter selects the events of a stream.
type filter struct {
	// actions selects the actions whose events the caller may see and asked for.
	actions *access.Filter
	// action selects one action; zero selects all.
	action envelope.ActionID
	// kinds selects kinds of events; nil selects all.
	kinds       []string
	invocations bool
}

// newFilter reads the filter from the query.
func newFilter(c *request.Call) (f filter, err error) {
	f.invocations = c.Query.Get("view") == viewInvocations
	if f.actions, err = access.NewFilter(c.By); err != nil {
		return f, err
	}
	f.actions.Session = c.Query.Get("session_id")
	if text := c.Query.Get("action_id"); text != "" {
		if err := f.action.UnmarshalText([]byte(text)); err != nil {
			return f, request.Invalid("/query/action_id", envelope.RuleFormat, "must be the id of an action")
		}
	}
	if text := c.Query.Get("kind"); text != "" {
		f.kinds = strings.Split(text, ",")
		for _, k := range f.kinds {
			if !slices.Contains(subscription.Kinds(), k) {
				return f, request.Invalid("/query/kind", envelope.RuleEnum, "unknown kind of event; known kinds: "+strings.Join(subscription.Kinds(), ", "))
			}
		}
	}
	if text := c.Query.Get("tool"); text != "" && f.actions.Tools(text) != nil {
		return f, request.Invalid("/query/tool", envelope.RulePattern, "must be source:name, with * for either or both")
	}
	return f, nil
}

// passes reports whether an item of an event of a batch passes.
func (f filter) passes(kind audit.Kind, it audit.Item, b broker.Batch) bool {
	name := string(kind)
	if f.invocations {
		if name = subscription.InvocationKind(kind, it); name == "" {
			return false
		}
	}
	if f.kinds != nil && !slices.Contains(f.kinds, name) || f.action != (envelope.ActionID{}) && it.Action != f.action {
		return false
	}
	if f.actions.PassesAll() {
		return true
	}
	subject, exists := b.Subjects[it.Action]
	return exists && f.actions.Passes(subject)
}
