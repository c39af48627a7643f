package approval

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// The bounds of InboxCounts.
const (
	maxCounted = 5000
	maxValues  = 20
	// expiringWithin is the time to expiry below which an item counts as expiring.
	expiringWithin = time.Hour
)

// InboxCounts counts the items of the inbox, each number up to 5,000. It does
// not read their arguments.
func (d *Service) InboxCounts(ctx context.Context, tenant envelope.TenantID, f InboxFilter, now time.Time) (wire.InboxCounts, error) {
	var c wire.InboxCounts
	soon := now.Add(expiringWithin)
	err := postgres.InTx(ctx, d.db, postgres.API(tenant).Snapshot(), func(tx pgx.Tx) error {
		one := f
		if one.Kinds = f.kinds(); len(f.Kinds) == 0 {
			one.Kinds = append(one.Kinds, InboxNotify) // counted, though nobody waits for it
		}
		items, err := inboxRows(ctx, tx, tenant, InboxQuery{InboxFilter: one, Most: maxCounted + 1})
		if err != nil {
			return err
		}
		counted := partsOf(items)
		waiting := len(counted[0])
		if err := setKinds(ctx, tx, tenant, counted[0]); err != nil {
			return err
		}
		c = countItems(counted, soon, len(f.Kinds) == 0)
		if err := nameOf(ctx, tx, tenant, c.People); err != nil {
			return err
		}
		if c.LostLogins, c.NeededScopes, err = d.lostLogins(ctx, tx, tenant); err != nil {
			return err
		}
		if waiting <= maxCounted {
			return nil
		}
		// Items that were not read may be urgent. An index finds those.
		escalated, expiring := f, f
		escalated.Escalated = new(true)
		if expiring.ExpiresBefore.IsZero() || expiring.ExpiresBefore.After(soon) {
			expiring.ExpiresBefore = soon
		}
		if f.Escalated == nil || *f.Escalated {
			if c.Escalated, err = countApprovals(ctx, tx, tenant, InboxQuery{InboxFilter: escalated}); err != nil {
				return err
			}
		}
		c.Expiring, err = countApprovals(ctx, tx, tenant, InboxQuery{InboxFilter: expiring, Order: InboxExpiry})
		return err
	})
	return c, err
}

// lostLogins returns the enabled sources that somebody has to log in to again, and
// those whose logins lack scopes.
func (d *Service) lostLogins(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID) (lost []string, lacking []wire.SourceScopes, err error) {
	snap, err := d.catalog.Current(ctx, tx, tenant)
	if err != nil {
		return nil, nil, err
	}
	lost, lacking = []string{}, []wire.SourceScopes{}
	for _, src := range snap.Sources() {
		switch {
		case !src.Enabled || src.Login == nil:
		case src.Login.LostAt != nil:
			lost = append(lost, src.ID)
		case len(src.Login.NeededScopes) > 0:
			lacking = append(lacking, wire.SourceScopes{Source: src.ID, Scopes: src.Login.NeededScopes})
		}
	}
	slices.Sort(lost)
	slices.SortFunc(lacking, func(a, b wire.SourceScopes) int { return strings.Compare(a.Source, b.Source) })
	return lost, lacking, nil
}

// countApprovals counts actions to decide about, up to maxCounted.
func countApprovals(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, q InboxQuery) (int, error) {
	q.Kinds = slices.DeleteFunc(q.kinds(), func(k InboxKind) bool { return !k.Decided() })
	q.Most = maxCounted
	items, err := inboxItems(ctx, tx, tenant, q)
	return len(items), err
}

// kinds returns the kinds that the filter leaves.
func (f InboxFilter) kinds() []InboxKind {
	if len(f.Kinds) > 0 {
		return slices.Clone(f.Kinds)
	}
	return append(decided(), InboxUnknown, InboxCompensation)
}

// partsOf splits items whose kinds are not set yet: those to decide about, and those of
// each other kind.
func partsOf(all []InboxItem) [][]InboxItem {
	kinds := []InboxKind{InboxApproval, InboxUnknown, InboxCompensation, InboxNotify}
	parts := make([][]InboxItem, len(kinds))
	for _, it := range all {
		of := slices.Index(kinds, it.Kind)
		parts[of] = append(parts[of], it)
	}
	return parts
}

// countItems counts items, in parts of which each may have one more than
// maxCounted. unasked reports whether notices count by their kind alone.
func countItems(parts [][]InboxItem, soon time.Time, unasked bool) wire.InboxCounts {
	var c wire.InboxCounts
	tools, sessions, people := make(map[string]int), make(map[string]int), make(map[uuid.UUID]int)
	for _, items := range parts {
		c.Capped = c.Capped || len(items) > maxCounted
		for _, it := range items[:min(len(items), maxCounted)] {
			*countOf(&c.ByKind, it.Kind)++
			if it.Kind == InboxNotify && unasked {
				continue
			}
			c.Total++
			tools[it.Tool.String()]++
			if it.Session != "" {
				sessions[it.Session]++
			}
			if it.person != uuid.Nil {
				people[it.person]++
			}
			if it.Escalated {
				c.Escalated++
			}
			if !it.ExpiresAt.IsZero() && it.ExpiresAt.Before(soon) {
				c.Expiring++
			}
		}
	}
	if c.Total > maxCounted {
		c.Total, c.Capped = maxCounted, true
	}
	c.Tools = mostOf(tools, strings.Compare, func(tool string, n int) wire.ToolCount { return wire.ToolCount{Tool: tool, Count: n} })
	c.Sessions = mostOf(sessions, strings.Compare, func(id string, n int) wire.SessionCount { return wire.SessionCount{Session: id, Count: n} })
	c.People = mostOf(people, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }, func(id uuid.UUID, n int) wire.PersonCount { return wire.PersonCount{Person: id, Count: n} })
	return c
}

// mostOf returns the values with the most items, the most first.
func mostOf[K comparable, V any](counts map[K]int, compare func(a, b K) int, value func(of K, n int) V) []V {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), compare(a, b)) })
	all := make([]V, 0, maxValues)
	for _, key := range keys[:min(len(keys), maxValues)] {
		all = append(all, value(key, counts[key]))
	}
	return all
}

// countOf returns the count of a kind.
func countOf(c *wire.InboxByKind, kind InboxKind) *int {
	switch kind {
	case InboxApproval:
		return &c.Approval
	case InboxQuestion:
		return &c.Question
	case InboxReview:
		return &c.Review
	case InboxUnknown:
		return &c.Unknown
	case InboxCompensation:
		return &c.Compensation
	case InboxNotify:
		return &c.Notify
	}
	return new(int)
}
