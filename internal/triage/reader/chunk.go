package reader

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/brief"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/lease"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/signal"
	"github.com/countersign-dev/countersign/internal/triage/thread"
)

// chunk is a set of messages that are decided and committed together.
type chunk struct {
	reader *Reader
	run    *Run
	lease  *lease.Lease
	folder mailbox.Folder
	mails  []mail
	// skipped holds the messages that the account does not return.
	skipped []asideRow

	// again holds the messages to decide again, by identity; nil in a chunk
	// that was read for another reason.
	again map[string]Stored
	known map[string]knownMessage
	// joins holds the stored decisions to join with those about further copies,
	// by identity.
	joins   map[string]Stored
	threads *thread.Threads
	senders *thread.Senders
	// absence holds the answers in the owner's absence.
	absence plan.Absence
	// briefs are the briefs that were mailed to the owner.
	briefs brief.Mailed

	messages  []messageRow
	findings  []thread.Finding
	decisions []decisionRow
	locations []locationRow
	proposals []proposalRow
	touched   []touchedRow
	// restored are messages found again in a folder that they were moved out
	// of, and brought are those of them that the owner moved back. refusedNow are
	// those of brought whose moves nobody has reverted, which counted already.
	restored, brought, refusedNow []uuid.UUID
	// narrowed are messages of which a copy allows less than was proposed.
	narrowed []uuid.UUID
	proposed int
}

// knownMessage is a message that was read before.
type knownMessage struct {
	id uuid.UUID
	// left reports whether the message is only in folders that triage moves
	// messages to, and moved holds the actions that proposed such moves.
	left  bool
	moved []string
	// undone are the actions of triage that were reversed.
	undone []string
	// judged are the copies that its decision joins, or empty.
	judged []string
}

// store decides the new messages of the chunk and writes everything.
func (c *chunk) store(ctx context.Context, tx pgx.Tx) error {
	// A retried transaction starts over.
	c.messages, c.findings, c.decisions, c.locations, c.proposals, c.touched, c.restored, c.brought, c.refusedNow, c.narrowed = nil, nil, nil, nil, nil, nil, nil, nil, nil, nil
	slices.SortStableFunc(c.mails, func(a, b mail) int { return a.item.Received.Compare(b.item.Received) })
	for i := range c.mails {
		m := &c.mails[i]
		m.values = thread.Of(m.message, m.item.Received, m.authentication)
		m.counted = countedOf(m)
	}
	if err := c.load(ctx, tx); err != nil {
		return err
	}
	for i := range c.mails {
		if err := c.reader.contained(func() error { return c.take(&c.mails[i]) }); err != nil {
			return err
		}
	}
	return c.write(ctx, tx)
}

// take adds a message: its location and, if it is new, the message and its
// decision.
func (c *chunk) take(m *mail) error {
	identity := string(m.message.Identity[:])
	if c.again != nil {
		return c.takeAgain(m, identity)
	}
	if known, ok := c.known[identity]; ok {
		c.addLocation(m, known)
		return c.takeCopy(m, identity)
	}
	m.id = uuid.Must(uuid.NewV7())
	c.known[identity] = knownMessage{id: m.id}
	mailed := c.briefs.Has(m.message)
	outgoing := c.folder.Use == mailbox.UseSent || mailed
	in := c.threads.Find(&m.values, c.lease.Account.Settings.Addresses)
	row := messageRow{Message: m.values, ID: m.id, Identity: hex.EncodeToString(m.message.Identity[:]), Thread: in.ID, Outgoing: outgoing, Size: m.item.Size}
	c.locate(m)
	switch {
	case mailed: // nobody owes an answer to it
	case outgoing:
		row.Awaits = c.asks(m) && c.threads.FollowUps.Ask(in.ID, m.item.Received)
		row.Pledge = thread.PledgeOf(m.message)
		c.senders.Wrote(&m.values, in)
	default:
		var err error
		if row.Automated, err = c.decide(m, in, nil); err != nil {
			return err
		}
		c.senders.Received(&m.values, in)
		c.findings = append(c.findings, thread.Findings(m.message, m.id)...)
	}
	c.messages = append(c.messages, row)
	c.threads.Add(&thread.Related{Message: m.values, Thread: in.ID, Outgoing: outgoing})
	return nil
}

// takeAgain decides a message again. Another message that has taken its place
// is not part of this chunk.
func (c *chunk) takeAgain(m *mail, identity string) error {
	due, ok := c.again[identity]
	if !ok || slices.ContainsFunc(c.decisions, func(d decisionRow) bool { return d.Message == due.ID }) {
		return nil
	}
	m.id = due.ID
	return c.redecide(m, &due)
}

// redecide decides a message that was decided before.
func (c *chunk) redecide(m *mail, before *Stored) error {
	in := c.threads.Find(&m.values, c.lease.Account.Settings.Addresses)
	in.ID = before.thread
	_, err := c.decide(m, in, before)
	return err
}

// addLocation adds the location of a known message. A message that had left was brought
// back if triage proposed to move it and it is in a folder that triage does not
// move messages to, in any order of reading the folders.
func (c *chunk) addLocation(m *mail, known knownMessage) {
	m.id = known.id
	if known.left && !slices.Contains(movedTo(), c.folder.Use) {
		c.restored = append(c.restored, known.id)
		if len(known.moved) > 0 {
			c.touched = append(c.touched, touchedRow{Message: known.id, Touched: true, Undone: known.moved})
			c.brought = append(c.brought, known.id)
			if slices.ContainsFunc(known.moved, func(action string) bool { return !slices.Contains(known.undone, action) }) {
				c.refusedNow = append(c.refusedNow, known.id)
			}
		}
		c.known[string(m.message.Identity[:])] = knownMessage{id: known.id}
	}
	c.locate(m)
}

// movedTo returns the uses of the folders that proposals may move messages to.
func movedTo() []mailbox.Use {
	return []mailbox.Use{mailbox.UseArchive, mailbox.UseAll, mailbox.UseJunk, mailbox.UseTrash}
}

// counts returns the numbers of decisions and proposals.
func (c *chunk) counts() measure.Counts {
	if c.again != nil {
		return measure.Counts{Decided: len(c.decisions), Proposed: c.proposed}
	}
	sent := 0
	for _, m := range c.messages {
		if m.Outgoing {
			sent++
		}
	}
	return measure.Counts{
		Decided: len(c.decisions), Sent: sent, Known: len(c.mails) - len(c.messages),
		TooLarge: len(c.skipped), Proposed: c.proposed,
	}
}

func (c *chunk) locate(m *mail) {
	c.locations = append(c.locations, locationRow{Key: m.item.Key, Message: m.id, Flags: append([]string{}, m.item.Flags...)})
}

// decide judges a received message and adds its decision and proposals. again
// is the stored state if it was decided before. It reports whether the message
// is automated.
func (c *chunk) decide(m *mail, in thread.Thread, again *Stored) (automated bool, err error) {
	about := c.about()
	about.Authentication, about.ReplyToMine, about.OwnerReplied = m.authentication, in.ReplyToMine, in.OwnerReplied
	about.Sender, about.List = c.senders.Of(&m.values, c.lease.Account.Settings)
	target := plan.Target{At: mailbox.State{Location: m.item.Location, Flags: m.item.Flags}, Message: m.message, Built: m.item.Built, Return: decide.ReturnOf(m.message.Event, about.Now), Received: m.item.Received}
	cause, earlier := reasonNew, decide.Earlier{}
	if again != nil {
		// The message itself counts among the earlier ones, under the list of
		// its first copy.
		about.Sender.Received = max(0, about.Sender.Received-1)
		if again.list == m.values.List {
			about.List.Received = max(0, about.List.Received-1)
		}
		cause, earlier, target.Proposed = again.reason, again.earlier, again.proposed
	}
	found := signal.Find(m.message, about)
	features := c.reader.cfg.Model.Features(m.message, about, found)
	prediction := c.reader.model.Predict(features)
	found = found.WithModel(prediction.Phishing)
	facts := decide.Facts{
		Headers: decide.HeadersOf(m.message), Folder: c.folder.Use, Flags: m.item.Flags, Authentication: m.authentication,
		Signals: found, Prediction: prediction, Sender: about.Sender, List: about.List, OwnerReplied: in.OwnerReplied,
		Amends: in.Amends, Earlier: earlier, Return: target.Return, Built: m.item.Built, Settings: c.lease.Account.Settings,
		Travelling: c.lease.Travelling,
	}
	// A message without proof of its sender counts as no answer, like an
	// automated one.
	a := m.authentication
	automated = decide.ByMachine(facts) || a.Asked() && !a.Proven() && !a.ListAligned
	facts.FollowUp = c.threads.FollowUps.Waits(in.ID, m.item.Received, !automated && in.Answers)
	asked := c.questions(m, facts, again)
	d := cascade.Decide(facts, asked.replies)
	d.Trace = append(d.Trace, asked.steps...)
	d = again.join(d)
	var proposals []plan.Proposal
	var skips []plan.Skip
	if c.lease.Account.Proposes() && !asked.withheld {
		proposals, skips = plan.Plan(d, target, c.lease.Account.Proposals)
		if again == nil || cause == reasonAsked {
			if answer, err := c.away(facts, d, target, m.item.Received); err != nil {
				skips = append(skips, plan.Skip{Action: decide.Away, Because: err.Error()})
			} else if answer.Tool != "" {
				proposals = append(proposals, answer)
			}
		}
	}
	decision, err := decisionRowOf(m, d, found, prediction, features, skips)
	if err != nil {
		return automated, err
	}
	decision.Reason, decision.Received, decision.Facts = cause, m.values.Received, decide.RecordOf(facts)
	asked.note(&decision)
	return automated, c.add(m, in, decision, proposals, again)
}

// away returns the answer to a message that arrived in its owner's absence.
func (c *chunk) away(f decide.Facts, d decide.Decision, on plan.Target, received time.Time) (plan.Proposal, error) {
	to, now := c.lease.Account.Proposals, time.Now()
	if !to.Away.At(now) || !to.Away.At(received) {
		return plan.Proposal{}, nil
	}
	return plan.Absent(f, d, on, to, &c.absence, now)
}

// add adds a decision and its proposals. It replaces an earlier decision of the
// chunk about another copy of the message.
func (c *chunk) add(m *mail, in thread.Thread, decision decisionRow, proposals []plan.Proposal, again *Stored) error {
	c.decisions = slices.DeleteFunc(c.decisions, func(d decisionRow) bool { return d.Message == m.id })
	c.proposals = slices.DeleteFunc(c.proposals, func(p proposalRow) bool { return p.Message == m.id })
	next := Stored{ID: m.id, thread: in.ID, list: m.values.List}
	if again != nil {
		next = *again
		if again.joins() {
			decision.Signals.flag(again.Found)
		}
		if again.narrowed(decision.Decision) {
			c.narrowed = append(c.narrowed, m.id)
		}
	}
	next.reason, next.Decision, next.Found, next.answers.Replies = reasonCopied, &decision.Decision, decision.Signals.Result, decision.Answers
	next.judged = judgedWith(next.judged, m.counted, decision.Reason)
	decision.Judged = next.judged
	c.joins[string(m.message.Identity[:])] = next
	c.decisions = append(c.decisions, decision)
	for _, p := range proposals {
		proposal, err := proposalRowOf(m.id, p)
		if err != nil {
			return err
		}
		c.proposals = append(c.proposals, proposal)
	}
	return nil
}

// asks reports whether a message of the owner asks for an answer: it has a
// question, or the models classify it as a request.
func (c *chunk) asks(m *mail) bool {
	if thread.Asks(m.message.Body) {
		return true
	}
	about := c.about()
	found := signal.Find(m.message, about)
	switch c.reader.model.Predict(c.reader.cfg.Model.Features(m.message, about, found)).Act {
	case classify.Request, classify.Propose, classify.Meet:
		return true
	case classify.Commit, classify.Deliver, classify.Amend, classify.FYI:
	}
	return false
}

// about returns the owner's data for signals.
func (c *chunk) about() signal.Context {
	s := c.lease.Account.Settings
	return signal.Context{Addresses: s.Addresses, Domains: s.Domains, Contacts: c.reader.contacts, Now: time.Now()}
}
