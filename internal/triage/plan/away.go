package plan

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/autoreply"
	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// Away is the answer to messages in the owner's absence. A grant for ToolAway with
// its texts and times approves the answers.
type Away struct {
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	// Zone is the IANA name of the time zone whose days MostADay counts; empty means UTC.
	Zone string `json:"zone,omitempty"`
	// Cohorts are the cohorts whose senders get an answer.
	Cohorts []decide.Cohort `json:"cohorts"`
	// MostADay bounds the answers of a day.
	MostADay int `json:"most_a_day"`
}

// Limits of an Away.
const (
	maxAwayText = 10_000
	maxAway     = 90 * 24 * time.Hour
	maxADay     = 500
)

// Check returns an error if the answer is invalid.
func (a Away) Check() error {
	_, zone := time.LoadLocation(a.Zone)
	whole := func(t time.Time) bool { return t.Truncate(time.Second).Equal(t) }
	unknown := func(c decide.Cohort) bool { return !slices.Contains(decide.Cohorts(), c) }
	_, subject := line(Value{a.Subject, Configured, "/away/subject"})
	_, text := printable(Value{a.Text, Configured, "/away/text"}, "\n\t")
	switch {
	case subject != nil || len(a.Subject) > maxSubject || text != nil || a.Text == "" || len(a.Text) > maxAwayText:
		return fmt.Errorf("the answer in absence needs a subject of one line and at most %d bytes, and a text of at most %d", maxSubject, maxAwayText)
	case !whole(a.Since) || !whole(a.Until) || !a.Since.Before(a.Until) || a.Until.Sub(a.Since) > maxAway || a.Since.IsZero():
		return errors.New("the absence needs since and until in whole seconds, at most 90 days apart")
	case zone != nil || a.Zone == "Local":
		return errors.New("the zone of the absence must be an IANA name, such as Europe/Berlin")
	case len(a.Cohorts) == 0 || slices.ContainsFunc(a.Cohorts, unknown) || len(a.Cohorts) > len(decide.Cohorts()):
		return errors.New("the absence needs cohorts, by their names")
	case a.MostADay < 1 || a.MostADay > maxADay:
		return fmt.Errorf("the most answers a day must be 1 to %d", maxADay)
	}
	return nil
}

// At reports whether the owner is away at a time.
func (a *Away) At(now time.Time) bool {
	return a != nil && !now.Before(a.Since) && now.Before(a.Until)
}

// day returns the begin of the day in the zone, and the deadline of its answers: the
// end of the day, or of the absence.
func (a *Away) day(now time.Time) (begin, deadline time.Time) {
	zone, err := time.LoadLocation(a.Zone)
	if err != nil {
		zone = time.UTC
	}
	y, m, d := now.In(zone).Date()
	begin, deadline = time.Date(y, m, d, 0, 0, 0, 0, zone), time.Date(y, m, d+1, 0, 0, 0, 0, zone)
	if a.Until.Before(deadline) {
		deadline = a.Until
	}
	return begin, deadline.UTC()
}

// on counts the answers that may be sent after a time.
func (a *Absence) on(begin time.Time) (n int) {
	for _, deadline := range a.Deadlines {
		if deadline.After(begin) {
			n++
		}
	}
	return n
}

// at returns the text at a pointer.
func (a *Away) at(pointer string) (string, bool) {
	if a == nil {
		return "", false
	}
	text, ok := map[string]string{
		"/away/subject": a.Subject, "/away/text": a.Text, "/away/since": a.Since.UTC().Format(time.RFC3339), "/away/until": a.Until.UTC().Format(time.RFC3339),
	}[pointer]
	return text, ok
}

// Absence holds the answers of an absence so far.
type Absence struct {
	// Named are the names of the proposals, one a sender.
	Named map[string]bool
	// Deadlines are their deadlines.
	Deadlines []time.Time
}

// Answered adds a proposal.
func (a *Absence) Answered(name string, deadline time.Time) {
	if a.Named == nil {
		a.Named = make(map[string]bool)
	}
	a.Named[name] = true
	a.Deadlines = append(a.Deadlines, deadline)
}

// Absent returns the proposal to answer a message in its owner's absence, and adds it
// to the absence. A sender gets one answer.
func Absent(f decide.Facts, d decide.Decision, on Target, c Config, sofar *Absence, now time.Time) (Proposal, error) {
	a := c.Away
	if !a.At(now) || a.Check() != nil {
		return Proposal{}, errors.New("the owner is not away")
	}
	refused, confirm := decide.Absent(f, d, a.Cohorts)
	if refused != "" {
		return Proposal{}, errors.New(refused)
	}
	if on.Built {
		return Proposal{}, errors.New("the account does not return the original of the message, which a source needs to find it")
	}
	recipient, err := autoreply.Recipient(on.Message, f.Settings.Addresses)
	if err != nil {
		return Proposal{}, err
	}
	name := awayName(c.Account, a.Since, recipient)
	begin, deadline := a.day(now)
	switch {
	case sofar.Named[name]:
		return Proposal{}, errors.New("the sender has an answer of this absence")
	case sofar.on(begin) >= a.MostADay:
		return Proposal{}, fmt.Errorf("%d answers are proposed for this day already", a.MostADay)
	}
	fields, err := address(on, c)
	if err != nil {
		return Proposal{}, err
	}
	fields = slices.DeleteFunc(fields, func(f Field) bool { return strings.HasPrefix(f.Pointer, "/expected/") })
	to, err := FromHeader(on.Message, HeaderFrom, 0)
	if err == nil && to.text != recipient {
		err = errors.New("the sender of the message is not the recipient of the answer")
	}
	fields = append(fields, Field{"/to", to})
	for _, part := range []string{"/subject", "/text", "/since", "/until"} {
		value, failed := FromConfig(c, "/away"+part)
		fields, err = append(fields, Field{part, value}), errors.Join(err, failed)
	}
	if err = errors.Join(err, Check(ToolAway, fields)); err != nil {
		return Proposal{}, err
	}
	sofar.Answered(name, deadline)
	return Proposal{
		Action: decide.Away, Parts: []Part{{Action: decide.Away}}, Source: c.Source, Tool: ToolAway, Fields: fields, Confirm: confirm, ExternalID: name,
		Deadline: deadline,
	}, nil
}

// awayName returns the name of the proposal to answer a sender in an absence.
func awayName(account string, since time.Time, sender string) string {
	return ExternalID(account, sha256.Sum256([]byte(since.UTC().Format(time.RFC3339))), decide.Away, strings.ToLower(sender))
}
