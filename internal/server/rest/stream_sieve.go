package rest

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// viewInvocations is the view of a stream that has the events of invocations
// in the place of transitions.
const viewInvocations = "invocations"

// sieve is what of the events a stream lets through: what the caller may see,
// and of that what it asked for.
type sieve struct {
	// sessions are those that an action must be of, all of them; none is any.
	sessions []string
	// tools are sets of patterns, of each of which one must cover the tool.
	tools [][]policy.Key
	// action is the one to hear of; zero is all.
	action envelope.ActionID
	// kinds are the names to hear of; none is all.
	kinds       []string
	invocations bool
}

// sieve reads what the caller may see and asked for.
func (c *call) sieve() (sieve, error) {
	f := sieve{invocations: c.query.Get("view") == viewInvocations}
	for _, session := range []string{agentSession(c.by), c.query.Get("session_id")} {
		if session != "" {
			f.sessions = append(f.sessions, session)
		}
	}
	if text := c.query.Get("action_id"); text != "" {
		if err := f.action.UnmarshalText([]byte(text)); err != nil {
			return f, invalid("/query/action_id", envelope.RuleFormat, "must be the id of an action")
		}
	}
	if text := c.query.Get("kind"); text != "" {
		f.kinds = strings.Split(text, ",")
		for _, k := range f.kinds {
			if !slices.Contains(subscription.Kinds(), k) {
				return f, invalid("/query/kind", envelope.RuleEnum, "there is no such kind of event; there are "+strings.Join(subscription.Kinds(), ", "))
			}
		}
	}
	if c.by.Tools != nil {
		if err := f.only(c.by.Tools); err != nil {
			return f, err
		}
	}
	if text := c.query.Get("tool"); text != "" {
		if f.only([]string{text}) != nil {
			return f, invalid("/query/tool", envelope.RulePattern, "must be source:name, with * for either or both")
		}
	}
	return f, nil
}

// only lets through what one of some patterns covers.
func (f *sieve) only(texts []string) error {
	patterns := make([]policy.Key, len(texts))
	for i, text := range texts {
		var err error
		if patterns[i], err = policy.ParsePattern(text); err != nil {
			return fault.Wrap(err, fault.Denied, "the token is for tools that cannot be read")
		}
	}
	f.tools = append(f.tools, patterns)
	return nil
}

// choosy says that it takes what actions are to choose.
func (f *sieve) choosy() bool { return len(f.sessions) > 0 || len(f.tools) > 0 }

// passes says whether an item of an event goes through.
func (f *sieve) passes(kind audit.Kind, it audit.Item, known map[envelope.ActionID]about) bool {
	name := string(kind)
	if f.invocations {
		if name = subscription.Invocation(kind, it); name == "" {
			return false
		}
	}
	if f.kinds != nil && !slices.Contains(f.kinds, name) || f.action != (envelope.ActionID{}) && it.Action != f.action {
		return false
	}
	if !f.choosy() {
		return true
	}
	a, ok := known[it.Action]
	if !ok {
		return false
	}
	for _, session := range f.sessions {
		if a.session != session {
			return false
		}
	}
	for _, patterns := range f.tools {
		if !slices.ContainsFunc(patterns, func(p policy.Key) bool { return subscription.Covers(p, a.tool) }) {
			return false
		}
	}
	return true
}

// invoked reads the actions that events of invocations are about.
func (o *stream) invoked(b batch) (map[envelope.ActionID]outbox.View, error) {
	if !o.sieve.invocations {
		return nil, nil
	}
	var ids []envelope.ActionID
	for _, e := range b.events {
		for i, it := range e.Items {
			if (eventID{e.Place, i}).after(o.last) && o.sieve.passes(e.Kind, it, b.about) {
				ids = append(ids, it.Action)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	return o.views(ids)
}

// viewsByID reads actions that the caller has been found to see.
func (s *Server) viewsByID(c *call, ids []envelope.ActionID) (map[envelope.ActionID]outbox.View, error) {
	slices.SortFunc(ids, func(a, b envelope.ActionID) int { return slices.Compare(a[:], b[:]) })
	views, err := s.views(c, slices.Compact(ids)...)
	all := make(map[envelope.ActionID]outbox.View, len(views))
	for _, v := range views {
		all[v.Envelope.ActionID] = v
	}
	return all, err
}
