package intake

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// CheckAgentSession returns an *envelope.InvalidError if a submitter without a session
// of its own names an agent's session: a grant for that session is for that agent's
// proposals only.
func CheckAgentSession(ctx context.Context, tx pgx.Tx, by Submitter, session string) error {
	if by.Session != "" || by.Reserved || session == "" {
		return nil
	}
	taken, err := agentSessions(ctx, tx, by.Tenant, []string{session})
	if err == nil && len(taken) > 0 {
		return errAgentSession
	}
	return err
}

var errAgentSession = check.Invalid("/session_id", "session", "is an agent's session, in which only that agent proposes; omit it, or use your own")

// refuseSessions answers the rows that CheckAgentSession refuses, and returns the
// others. It costs one statement where a submitter without a session of its own
// names any, and none otherwise.
func refuseSessions(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, rows []*row, answers []Answer) ([]*row, error) {
	var named []string
	for _, r := range rows {
		if r.namesSession() {
			named = append(named, r.Session)
		}
	}
	if len(named) == 0 {
		return rows, nil
	}
	slices.Sort(named)
	taken, err := agentSessions(ctx, tx, tenant, slices.Compact(named))
	if err != nil || len(taken) == 0 {
		return rows, err
	}
	return slices.DeleteFunc(rows, func(r *row) bool {
		refused := r.namesSession() && slices.Contains(taken, r.Session)
		if refused {
			answers[r.at] = Answer{Err: errAgentSession}
		}
		return refused
	}), nil
}

// namesSession reports whether the row names a session that is not its
// submitter's own.
func (r *row) namesSession() bool { return r.Session != "" && r.by.Session == "" && !r.by.Reserved }

// usage is a session's use of its limits. Its holder has locked the session's
// row, so the counts are stable.
type usage struct {
	limits limits.Session
	// used is the number of envelopes that the session proposed in its current
	// minute, which ends in minuteIn.
	used     int
	minuteIn time.Duration
	// pending is the number of pending envelopes. If none is decided, the next may
	// be proposed after pendingIn.
	pending   int
	pendingIn time.Duration
}

// count counts an action, or returns the limit that it exceeds.
func (u *usage) count(r *row) error {
	waits := r.waits()
	switch {
	case u.limits.Minute > 0 && u.used >= u.limits.Minute:
		return fault.Exceeded(u.minuteQuota(), "the session has proposed %d actions within a minute, which is the limit; try again in %s",
			u.limits.Minute, roundUp(u.minuteIn))
	case u.limits.Pending > 0 && waits && u.pending >= u.limits.Pending:
		return fault.Exceeded(u.pendingQuota(),
			"%d actions of the session wait for a person, which is the limit; try again when one is decided or undone, or in %s, when one expires",
			u.limits.Pending, roundUp(u.pendingIn))
	}
	u.used++
	if waits {
		u.pending++
	}
	return nil
}

func (u *usage) minuteQuota() fault.Quota {
	return fault.Quota{Name: "session-minute", Max: u.limits.Minute, Window: time.Minute, Left: max(0, u.limits.Minute-u.used), Reset: u.minuteIn}
}

func (u *usage) pendingQuota() fault.Quota {
	return fault.Quota{Name: "session-pending", Max: u.limits.Pending, Left: max(0, u.limits.Pending-u.pending), Reset: u.pendingIn}
}

// quotas returns the session's remaining limits, those that were counted.
func (u *usage) quotas(countedPending bool) (quotas []fault.Quota) {
	if u.limits.Minute > 0 {
		quotas = append(quotas, u.minuteQuota())
	}
	if u.limits.Pending > 0 && countedPending {
		quotas = append(quotas, u.pendingQuota())
	}
	return quotas
}

// roundUp rounds a wait up to whole seconds, and to at least one.
func roundUp(wait time.Duration) time.Duration {
	return time.Duration(fault.WholeSeconds(wait)) * time.Second
}

// admit keeps the rows that the limits of their submitters' sessions allow, in
// order, and answers the others with the time of the next try. It also sets the
// sessions' remaining limits. Without a session or a limit it costs nothing.
// Sessions are locked in the order of their names, so that two transactions
// cannot deadlock.
//
// An existing envelope is not proposed again, so a limit never refuses it:
// unless the rows are known to be new, as looked reports, the refused ones are
// looked up.
func admit(ctx context.Context, tx pgx.Tx, snap *settings.Settings, wait time.Duration, looked bool, rows []*row, a *acceptance) ([]*row, error) {
	limits := snap.Limits.Session()
	bySession := make(map[string][]*row)
	for _, r := range rows {
		if s := r.by.Session; s != "" {
			bySession[s] = append(bySession[s], r)
		}
	}
	refused := make(map[int]error)
	var doubtful []*row
	for _, session := range slices.Sorted(maps.Keys(bySession)) {
		counted, err := admitSession(ctx, tx, snap.Tenant, session, limits, wait, bySession[session], a.quotas)
		if err != nil {
			return nil, err
		}
		for _, r := range bySession[session] {
			if err := counted[r.at]; err != nil {
				if refused[r.at] = err; !looked && r.hasKey() {
					doubtful = append(doubtful, r)
				}
			}
		}
	}
	if len(refused) == 0 {
		return rows, nil
	}
	if len(doubtful) > 0 {
		known, err := findExisting(ctx, tx, snap.Tenant, doubtful, a.answers)
		if err != nil {
			return nil, err
		}
		rows = slices.DeleteFunc(rows, func(r *row) bool { return known[r.at] })
		for i, q := range a.quotas {
			if q != nil && !slices.ContainsFunc(rows, func(r *row) bool { return r.of == i }) {
				a.quotas[i] = nil
			}
		}
	}
	return slices.DeleteFunc(rows, func(r *row) bool {
		if refused[r.at] != nil {
			a.answers[r.at] = Answer{Err: refused[r.at]}
		}
		return refused[r.at] != nil
	}), nil
}

// admitSession counts the rows of a session, and returns the limit that each of
// those exceeds which may not be written, by their positions.
func admitSession(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, session string, limits limits.Session, wait time.Duration, rows []*row, quotas [][]fault.Quota) (refused map[int]error, err error) {
	waiting := slices.ContainsFunc(rows, (*row).waits)
	if limits.Minute == 0 && (limits.Pending == 0 || !waiting) {
		return nil, nil
	}
	u, err := lockUsage(ctx, tx, tenant, session, limits, len(rows), waiting)
	if err != nil {
		return nil, err
	}
	if u.pending == 0 {
		u.pendingIn = wait
	}
	refused = make(map[int]error)
	for _, r := range rows {
		if err := u.count(r); err != nil {
			refused[r.at] = err
		}
		quotas[r.of] = u.quotas(waiting)
	}
	if len(refused) == 0 {
		return nil, nil
	}
	return refused, setUsage(ctx, tx, tenant, session, u)
}
