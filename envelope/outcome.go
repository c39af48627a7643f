package envelope

import (
	"strings"
	"time"
)

// UndoneBy precedes the actor in the message of an action that was undone.
const UndoneBy = "undone by "

// Outcome is the state of an action with the people and times that led to it. All
// messages to people about it are made of its String.
type Outcome struct {
	Phase Phase
	// Mode is the mode that policy decided.
	Mode Mode
	// DecidedBy is the person who decided, at DecidedAt; empty if no person did.
	// Note is the person's reason.
	DecidedBy Actor
	DecidedAt *time.Time
	Note      string
	// ExpiresAt is the end of the wait for a decision.
	ExpiresAt *time.Time
	// Failure and EndedAt are of the end of the action.
	Failure *Failure
	EndedAt *time.Time
}

// String returns the state as a clause about "it": "it was undone by ada at …".
func (o Outcome) String() string {
	switch o.Phase {
	case PhasePending:
		return "it waits for a decision"
	case PhaseApproved:
		if o.DecidedBy == "" {
			return "it needs no decision"
		}
		return "it was approved" + o.decided()
	case PhaseDenied:
		return o.denied()
	case PhaseExpired:
		return "nobody decided about it" + clock(" by ", o.ExpiresAt)
	case PhaseUndone:
		by := ""
		if o.Failure != nil {
			by, _ = strings.CutPrefix(o.Failure.Message, UndoneBy)
		}
		return "it was undone" + person(Actor(by)) + clock(" at ", o.EndedAt)
	case PhaseExecuting, PhaseCompleted, PhaseFailed, PhaseSkipped, PhaseUnknown:
	}
	if o.DecidedBy != "" {
		return "it was approved" + o.decided() + ", and " + o.attempted()
	}
	return o.attempted()
}

// denied returns the state of an action that policy, a person or the kill switch
// refused.
func (o Outcome) denied() string {
	switch {
	case o.Mode == ModeDeny:
		return "policy denied it"
	case o.Failure != nil && o.Failure.Code == CodeKilled:
		return "it was stopped" + o.decided() + after(o.Failure.Message)
	}
	return "it was denied" + o.decided() + after(o.Note)
}

// attempted returns the state of an action that needed no person, or has one's
// approval.
func (o Outcome) attempted() string {
	switch o.Phase {
	case PhaseExecuting:
		return "its call is in progress"
	case PhaseCompleted:
		return "its call succeeded" + clock(" at ", o.EndedAt)
	case PhaseFailed:
		return "its call failed" + clock(" at ", o.EndedAt)
	case PhaseSkipped:
		why := ""
		if o.Failure != nil {
			why = o.Failure.Message
		}
		return "it was skipped" + clock(" at ", o.EndedAt) + after(why)
	case PhasePending, PhaseApproved, PhaseDenied, PhaseExpired, PhaseUndone, PhaseUnknown:
	}
	return "it is unknown whether its call had an effect"
}

func (o Outcome) decided() string { return person(o.DecidedBy) + clock(" at ", o.DecidedAt) }

// after returns a reason as the end of a clause.
func after(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func person(by Actor) string {
	if by == "" {
		return ""
	}
	return " by " + by.Brief()
}

func clock(word string, at *time.Time) string {
	if at == nil {
		return ""
	}
	return word + at.UTC().Format(time.RFC3339)
}
