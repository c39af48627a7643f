// Package access decides who may call an operation and which actions, sessions
// and events a caller may see, for the REST API, the event stream and MCP
// alike. It does not authenticate (internal/tenant/identity) and does not
// decide whether an action may run (internal/tenant/policy).
package access

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Route is a path and method of the API, and who may call it.
type Route struct {
	// Pattern is a pattern of http.ServeMux with a method.
	Pattern string
	// Operation is the operationId in openapi.yaml.
	Operation string
	// Roles are the roles that may call the route; nil means everybody, even
	// without a token.
	Roles []identity.Role
	// Scope is the scope that a token narrowed to scopes must have. Every
	// route with roles has one, except those about the caller itself.
	Scope identity.Scope
}

// Admit returns nil if a caller may call the route. The error is fault.Denied.
func (rt Route) Admit(by identity.Principal) error {
	if !slices.Contains(rt.Roles, by.Role) {
		return fault.Coded(wire.CodeRole, fault.Denied, "a token of the role %s may not do this; it needs the role %s", by.Role, rolesText(rt.Roles))
	}
	if rt.Scope != "" && !by.Has(rt.Scope) {
		return fault.Coded(wire.CodeScope, fault.Denied, "this needs the scope %s, which the token does not have", rt.Scope)
	}
	// Dead letters are replayed and discarded in bulk, for any tool.
	if rt.Scope == identity.DeadLettersManage && by.Tools != nil {
		return fault.Coded(wire.CodeTools, fault.Denied, "the token covers only some tools; use a token for all tools")
	}
	return nil
}

// rolesText lists roles as a sentence does.
func rolesText(roles []identity.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Table is every route of the API.
type Table []Route

// Admit returns nil if a caller may call the operation. The error is
// fault.Denied.
func (t Table) Admit(by identity.Principal, operation string) error {
	for _, rt := range t {
		if rt.Operation == operation {
			return rt.Admit(by)
		}
	}
	return fault.New(fault.Denied, "unknown operation %q", operation)
}

// Operations returns the operations that need a token and that a caller may
// call.
func (t Table) Operations(by identity.Principal) []string {
	var names []string
	for _, rt := range t {
		if rt.Roles != nil && rt.Admit(by) == nil {
			names = append(names, rt.Operation)
		}
	}
	return names
}
