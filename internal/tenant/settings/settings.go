// Package settings owns the compiled configuration of one tenant: the modes,
// rules about arguments, grants, reviews, preferences and sessions' modes that
// policy decides by, together with the tenant's catalog and limits. It stores
// them, reads and writes them as one document, and caches them compiled, so that
// Settings answer without a database. It does not decide: package policy does,
// from what the Settings give it.
package settings

import (
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Settings are one tenant's catalog, policy and limits at one version. They
// are safe for concurrent use and never change.
type Settings struct {
	*catalog.Catalog

	Tenant  envelope.TenantID
	Version int64
	// Limits are the tenant's own settings of what may be sent, when, and how
	// fast.
	Limits *limits.Set

	organisation policy.Rules
	automations  map[string]policy.Rules
	layers       layers
	decider      *policy.Decider
	reviews      map[policy.Key][]ReviewRule
}
