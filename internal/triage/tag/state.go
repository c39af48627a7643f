package tag

// State is the state of a tag.
type State string

// The states.
const (
	// Due means tagged, and no try is open.
	Due State = "due"
	// Open means tagged, and a try is open: its envelope waits for a person, for
	// its turn, or for the resolution of an unknown outcome.
	Open State = "open"
	// Skipped means tagged, and no try begins until somebody retries.
	Skipped State = "skipped"
	// Leaving means that the tag was removed while a try was open.
	Leaving State = "leaving"
	// Gone means that the message has no such tag.
	Gone State = "gone"
)

// States returns all states.
func States() []State { return []State{Due, Open, Skipped, Leaving, Gone} }

// Event is an event in the life of a tag.
type Event string

// The events. An outcome that is unknown is none: its try stays open until the
// outcome is resolved.
const (
	// Tagged and Untagged are the owner's.
	Tagged   Event = "tagged"
	Untagged Event = "untagged"
	// Tried means that a try began: its envelope was proposed.
	Tried Event = "tried"
	// Succeeded means that the effect happened, or existed already.
	Succeeded Event = "succeeded"
	// Failed means that the try ended without its effect, or that its arguments
	// were incomplete.
	Failed Event = "failed"
	// Stopped means that a person or policy ended the try.
	Stopped Event = "stopped"
	// Retried means that a person puts the tag back, with a counter of 0.
	Retried Event = "retried"
)

// Events returns all events.
func Events() []Event {
	return []Event{Tagged, Untagged, Tried, Succeeded, Failed, Stopped, Retried}
}

// MaxFailures is the number of consecutive failures after which a tag is skipped.
const MaxFailures = 3

// Tag is an action tag of a message.
type Tag struct {
	State State
	// Try is the number of the open try, or of the next one.
	Try int
	// Failures is the number of consecutive failures.
	Failures int
}

// New returns a tag without history.
func New() Tag { return Tag{State: Gone, Try: 1} }

// Next returns the tag after an event. It returns false if the event cannot
// happen in this state.
func (t Tag) Next(e Event) (Tag, bool) {
	switch e {
	case Tagged:
		switch t.State {
		case Gone:
			return Tag{State: Due, Try: t.Try}, true
		case Leaving:
			t.State = Open
		case Due, Open, Skipped:
		}
		return t, true
	case Untagged:
		switch t.State {
		case Due, Skipped:
			return Tag{State: Gone, Try: t.Try}, true
		case Open:
			t.State = Leaving
		case Leaving, Gone:
		}
		return t, true
	case Tried:
		before := t.State
		t.State = Open
		return t, before == Due
	case Succeeded:
		return Tag{State: Gone, Try: t.Try + 1}, t.open()
	case Failed:
		switch t.State {
		case Leaving:
			return Tag{State: Gone, Try: t.Try + 1}, true
		case Due, Open:
			t.State, t.Try, t.Failures = Due, t.Try+1, t.Failures+1
			if t.Failures >= MaxFailures {
				t.State = Skipped
			}
			return t, true
		case Skipped, Gone:
		}
		return t, false
	case Stopped:
		if t.State == Leaving {
			return Tag{State: Gone, Try: t.Try + 1}, true
		}
		before := t.State
		t.State, t.Try = Skipped, t.Try+1
		return t, before == Open
	case Retried:
		return Tag{State: Due, Try: t.Try}, !t.open()
	}
	return t, false
}

// open reports whether a try is open.
func (t Tag) open() bool { return t.State == Open || t.State == Leaving }
