// Package fence owns the decision whether a database is the one that workers worked
// in, with all that they committed: only then may actions be sent. A copy, a database
// that went back in time and one that lost commits in a failover are held until a
// person recovers them. It reads and changes the rows fence, workers and
// worker_commits; the statements that claim compare with the fence by themselves.
package fence

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
)

// State is a state of the fence.
type State string

// The states.
const (
	// StateNew: no worker has worked in this database.
	StateNew State = "new"
	// StateOpen: actions may be sent.
	StateOpen State = "open"
	// StateChecking: the server changed, and workers compare their commits.
	StateChecking State = "checking"
	// StateHeld: nothing is claimed until a person recovers the database.
	StateHeld State = "held"
)

// The reasons for which a fence is held.
const (
	// ReasonCopy: the cluster or the database is another one.
	ReasonCopy = "copy"
	// ReasonLost: a worker does not find its last commit.
	ReasonLost = "lost"
	// ReasonSetBack: commits of a process that has ended are missing, by its state file.
	ReasonSetBack = "set_back"
	// ReasonTimeline: the timeline is another one, and no worker of before confirms that
	// nothing was lost.
	ReasonTimeline = "timeline"
	// ReasonMoved: a person held the database before they moved it.
	ReasonMoved = "moved"
)

// Identity is what tells a database from others. What the server withholds is empty
// or zero, and is not compared.
type Identity struct {
	System   string
	OID      int64
	Timeline int
}

// differs describes how an identity differs from the one that was stored; empty if
// it does not. A timeline also changes in a failover that lost nothing.
func (i Identity) differs(now Identity) string {
	switch {
	case i.System != "" && now.System != "" && i.System != now.System:
		return fmt.Sprintf("the cluster is %s and was %s", now.System, i.System)
	case i.OID != 0 && now.OID != 0 && i.OID != now.OID:
		return fmt.Sprintf("the database has the OID %d and had %d in the same cluster", now.OID, i.OID)
	}
	return ""
}

func (i Identity) forked(now Identity) bool {
	return i.Timeline != 0 && now.Timeline != 0 && i.Timeline != now.Timeline
}

// Status is the fence with the present server.
type Status struct {
	Database, RecoveredFrom uuid.UUID
	// Earlier is the id of the database before the first worker or the last recovery gave
	// it the present one; zero for none.
	Earlier        uuid.UUID
	Epoch          int64
	State          State
	Reason, Detail string
	// Stored is the identity of the server that was checked last, Now that of the
	// present one.
	Stored, Now Identity
	// SameServer reports whether the server has run since it was checked.
	SameServer bool
	// Since is when the state changed.
	Since time.Time
	// AskFrom and AskUntil bound the time in which proposals of classes once and keyed need a person;
	// zero for none.
	AskFrom, AskUntil time.Time
	// Lost counts the lost calls whose actions are not there.
	Lost int64
}

// Why describes why nothing is claimed; empty if actions may be sent.
func (s Status) Why() string {
	switch s.State {
	case StateHeld:
		return s.Detail
	case StateChecking:
		return "the server changed, and workers compare their commits"
	case StateNew:
		return ""
	case StateOpen:
	}
	switch {
	case s.Stored.differs(s.Now) != "":
		return "this database is a copy: " + s.Stored.differs(s.Now)
	case !s.SameServer:
		return "the server started since, and no worker has compared its commits"
	}
	return ""
}

// memory is the knowledge that a worker has of a database: its present and its earlier id, and for
// each loop the last commit that was confirmed.
type memory struct {
	Database uuid.UUID       `json:"database_id"`
	Earlier  uuid.UUID       `json:"earlier_id,omitzero"`
	Worker   uuid.UUID       `json:"worker"`
	Commits  map[int16]int64 `json:"commits"`
}

func (m memory) empty() bool { return len(m.Commits) == 0 }

// missing describes the first commit that is not there; empty if all are.
func (m memory) missing(there map[int16]int64) string {
	for _, loop := range slices.Sorted(maps.Keys(m.Commits)) {
		if seq := m.Commits[loop]; there[loop] < seq {
			return fmt.Sprintf("the worker %s committed %d times in its loop %d, and %d of these are here", m.Worker, seq, loop, there[loop])
		}
	}
	return ""
}

// knows reports whether a database is the one that is remembered, or was it earlier.
func (m memory) knows(database uuid.UUID) bool {
	return m.Database == database || m.Earlier == database && m.Earlier != uuid.Nil
}

// step is the next step of a worker about the fence.
type step int

const (
	// pass: actions may be sent in the epoch.
	pass step = iota
	// wait: the fence is held.
	wait
	// refuse: this worker claims nothing, and the others are not affected.
	refuse
	// adopt: this is the first worker of the database.
	adopt
	// hold: nothing may be claimed.
	hold
	// begin: the server is another one, and all of this worker's commits are there.
	begin
	// confirm: the same, while workers compare their commits.
	confirm
)

// result is the next step, and its reason.
type result struct {
	step           step
	reason, detail string
	// lost reports whether commits of this worker are missing.
	lost bool
}

// decide compares the memory of a worker with the fence and with its commits that
// are there. wanted is the database that the worker is for; zero for any.
func decide(m memory, s Status, there map[int16]int64, wanted uuid.UUID) result {
	// A database that has its earlier id again was set back.
	setBack := m.Database != uuid.Nil && m.Database != s.Database && m.knows(s.Database)
	if wanted != uuid.Nil && wanted != s.Database && (!setBack || wanted != m.Database) {
		return result{step: refuse, detail: fmt.Sprintf("the database is %s, and COUNTERSIGN_DATABASE_ID is %s", s.Database, wanted)}
	}
	if m.Database != uuid.Nil && !m.knows(s.Database) {
		return result{step: refuse, detail: fmt.Sprintf("the database is %s, and this worker or its state file is of %s", s.Database, m.Database)}
	}
	missing := m.missing(there)
	if setBack {
		missing = fmt.Sprintf("the database is %s, and became %s later", s.Database, m.Database)
	}
	lost := missing != ""
	if s.State == StateHeld {
		return result{step: wait, reason: s.Reason, detail: s.Detail, lost: lost}
	}
	if copied := s.Stored.differs(s.Now); copied != "" && s.State != StateNew {
		return result{step: hold, reason: ReasonCopy, detail: "this database is a copy: " + copied, lost: lost}
	}
	switch {
	case lost:
		return result{step: hold, reason: ReasonLost, detail: "commits are missing: " + missing, lost: true}
	case s.State == StateNew:
		return result{step: adopt}
	case !s.SameServer:
		return result{step: begin}
	case s.State == StateChecking:
		return result{step: confirm}
	}
	return result{step: pass}
}

// answers is how the other workers compare with the epoch.
type answers struct {
	// others reports whether another process has not ended; awaited whether one that has not
	// confirmed is still waited for; remembered whether one confirmed that had commits
	// to compare.
	others, awaited, remembered bool
}

// newcomers is how long a server is checked at least, if there are other workers: one
// that started just before the failover may be unknown to the new primary.
const newcomers = 2 * time.Second

// next is the state that a checked fence goes to after some time; Checking if it is to
// wait.
func (s Status) next(a answers, after time.Duration) State {
	switch {
	case a.awaited || a.others && after < newcomers:
		return StateChecking
	case s.Stored.forked(s.Now) && !a.remembered:
		return StateHeld
	}
	return StateOpen
}
