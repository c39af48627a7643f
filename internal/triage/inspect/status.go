// Package inspect reads the state of triage for people: accounts, messages with
// their decisions and proposals, and the reasons. It also stores people's
// requests for runs and their corrections. It reads no mail and decides
// nothing.
package inspect

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/quota"
)

// The states of an account.
const (
	stateDisabled = "disabled"
	statePaused   = "paused"
	stateUnseen   = "unseen"
	stateRunning  = "running"
	stateWatching = "watching"
	stateAsked    = "asked"
	stateFailing  = "failing"
	stateOverdue  = "overdue"
	stateWaiting  = "waiting"
	stateLimited  = "limited"
)

// overdueAfter is how late a run is reported as overdue. It is longer than the
// interval at which a process claims due accounts.
const overdueAfter = time.Minute

// schedule is the stored schedule of an account.
type schedule struct {
	status wire.TriageStatus
	// pause is the pause of the account: paused, travelling or empty.
	pause string
	// scheduled reports whether a triage process has claimed the account or a
	// run was requested.
	scheduled bool
	// holder is the process that holds the account's lease, and lastRun the run
	// that started last.
	holder, lastRun *uuid.UUID
	lease           *time.Time
}

// at returns the status at a time.
func (s schedule) at(now time.Time) wire.TriageStatus {
	v := s.status
	held := s.holder != nil && s.lease != nil && s.lease.After(now)
	asked := v.AskedAt != nil
	reading := held && v.LastStartedAt != nil && (v.LastEndedAt == nil || v.LastEndedAt.Before(*v.LastStartedAt))
	switch {
	case !v.Enabled && !held:
		v.State, v.Reason = stateDisabled, "the account is disabled, so that it is not read"
	case s.pause == statePaused:
		v.State, v.Reason = statePaused, "a person paused triage: `countersign pause list` shows by whom and why"
	case reading:
		v.State, v.RunID = stateRunning, s.lastRun
		v.Reason = "a run reads the account now; another process may take over after " + stamp(*s.lease)
	case asked && now.Sub(*v.AskedAt) <= overdueAfter:
		v.State, v.Reason = stateAsked, "a run was asked for and begins as soon as a triage process looks"
	case !held && (!s.scheduled || asked && v.LastStartedAt == nil):
		v.State, v.Reason = stateUnseen, "no triage process has read the account yet: check that one runs with a login that is bound to this tenant"
	case v.Quota != nil && v.Quota.Until != nil && v.Quota.Until.After(now):
		v.State, v.Reason = stateLimited, fmt.Sprintf("nothing is read until %s: %s", stamp(*v.Quota.Until), v.Quota.Reason)
	case held && v.Failures == 0:
		v.State, v.Reason = stateWatching, "a triage process watches the account and reads what comes"
	case asked:
		v.State, v.Reason = stateOverdue, fmt.Sprintf("a run was asked for at %s and did not begin: check that a triage process runs", stamp(*v.AskedAt))
	case v.NextRunAt != nil && now.Sub(*v.NextRunAt) > overdueAfter:
		v.State, v.Reason = stateOverdue, fmt.Sprintf("a run is due since %s and did not begin: check that a triage process runs", stamp(*v.NextRunAt))
	case v.Failures > 0:
		v.State, v.Reason = stateFailing, fmt.Sprintf("the last %d runs failed; the next one is at %s", v.Failures, stampOf(v.NextRunAt))
	default:
		v.State, v.Reason = stateWaiting, "the next run is at "+stampOf(v.NextRunAt)
	}
	if s.pause == "travelling" {
		v.Reason += "; travelling: a person approves everything"
	}
	return v
}

// quotaOf returns a stored quota state for people, or nil.
func quotaOf(stored []byte) (*wire.TriageQuota, error) {
	var s quota.State
	if err := json.Unmarshal(stored, &s); err != nil || s.Provider == "" {
		return nil, err
	}
	v := &wire.TriageQuota{Provider: s.Provider, Until: s.Until, Reason: s.Reason, Limits: []wire.TriageLimit{}}
	for _, l := range s.Levels {
		v.Limits = append(v.Limits, wire.TriageLimit{Of: string(l.Of), Per: envelope.Duration(time.Duration(l.Per) * time.Second), Most: l.Most, Left: l.Left, At: l.At})
	}
	return v, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func stampOf(t *time.Time) string {
	if t == nil {
		return "no set time"
	}
	return stamp(*t)
}
