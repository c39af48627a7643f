package intake

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// CheckAgentSession returns an *envelope.InvalidError if a submitter without a session
// of its own names one that belongs to an agent: a grant for an agent's session
// is for what that agent proposes.
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

var errAgentSession = check.Invalid("/session_id", "session", "is an agent's session, in which only that agent proposes; leave it out, or take one of your own")

// refuseSessions answers the rows that CheckAgentSession refuses, and returns the
// others. It costs one statement where a submitter without a session of its own
// names any, and none otherwise.
func refuseSessions(ctx context.Context, tx pgx.Tx, by Submitter, rows []row, answers []Answer) ([]row, error) {
	if by.Session != "" || by.Reserved {
		return rows, nil
	}
	var named []string
	for i := range rows {
		if s := rows[i].Session; s != "" {
			named = append(named, s)
		}
	}
	if len(named) == 0 {
		return rows, nil
	}
	slices.Sort(named)
	taken, err := agentSessions(ctx, tx, by.Tenant, slices.Compact(named))
	if err != nil || len(taken) == 0 {
		return rows, err
	}
	return slices.DeleteFunc(rows, func(r row) bool {
		refused := r.Session != "" && slices.Contains(taken, r.Session)
		if refused {
			answers[r.at] = Answer{Err: errAgentSession}
		}
		return refused
	}), nil
}

// usage is what a session has used of its limits. Its holder has the lock of the
// session's row, so that nobody else counts meanwhile.
type usage struct {
	limits limits.Session
	// used is how many envelopes the session proposed in its minute, which is
	// over in minuteIn.
	used     int
	minuteIn time.Duration
	// pending is how many wait for a decision. If nobody decides, another may
	// wait after pendingIn.
	pending   int
	pendingIn time.Duration
}

// count counts an action, or returns the limit that it exceeds.
func (u *usage) count(r *row) error {
	waits := r.waits()
	switch {
	case u.limits.Minute > 0 && u.used >= u.limits.Minute:
		return fault.Exceeded(u.minuteQuota(), "the session has proposed %d actions within a minute, as many as it may; try again in %s",
			u.limits.Minute, roundUp(u.minuteIn))
	case u.limits.Pending > 0 && waits && u.pending >= u.limits.Pending:
		return fault.Exceeded(u.pendingQuota(),
			"%d actions of the session wait for a person, as many as may; try again when one of them is decided or taken back, or in %s, when one expires",
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

// quotas returns how much the session has left of the limits that were counted.
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

// admit keeps the rows that the limits of the submitter's session allow, in
// order, and answers the others with when to try again. It also returns how much
// the session has left afterwards. It costs nothing where there is no session,
// or no limit.
//
// An envelope that the tenant knows already is not proposed again, and so is
// never refused for a limit: looked reports that the rows are known to be new, and
// if they are not and a limit refuses one, admit returns errTaken, so that the
// ids are looked for.
func admit(ctx context.Context, tx pgx.Tx, snap *settings.Settings, by Submitter, wait time.Duration, looked bool, rows []row, answers []Answer) ([]row, []fault.Quota, error) {
	limits := snap.Limits.Session()
	waiting := 0
	for i := range rows {
		if rows[i].waits() {
			waiting++
		}
	}
	if by.Session == "" || limits.Minute == 0 && (limits.Pending == 0 || waiting == 0) {
		return rows, nil, nil
	}
	u, err := lockUsage(ctx, tx, by, limits, len(rows), waiting > 0)
	if err != nil {
		return nil, nil, err
	}
	if u.pending == 0 {
		u.pendingIn = wait
	}
	admitted := make([]row, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		refusal := u.count(r)
		if refusal == nil {
			admitted = append(admitted, *r)
			continue
		}
		if !looked && r.hasKey() {
			return nil, nil, errTaken
		}
		answers[r.at] = Answer{Err: refusal}
	}
	if len(admitted) == len(rows) {
		return admitted, u.quotas(waiting > 0), nil
	}
	return admitted, u.quotas(waiting > 0), setUsage(ctx, tx, by, u)
}
