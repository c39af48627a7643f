package engine

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// mail is a message that was read.
type mail struct {
	item           mailbox.Item
	message        *message.Message
	raw            []byte
	authentication authenticate.Result
	id             uuid.UUID
	// header names what the message is called, and what it names.
	header string
	named  []string
	// counted is the digest of the header fields and the authentication that deciding
	// uses: copies of a message may differ in them.
	counted string
}

// newMail returns a message as it was read. One that the reader built says so,
// for people.
func newMail(it mailbox.Item, raw []byte) mail {
	m := mail{item: it, message: message.Parse(raw), raw: raw}
	if it.Built {
		m.message.Warnings = append(m.message.Warnings, "the account does not give the original: the message was put together from fields and text, and nothing proves who sent it")
		if m.item.Size == 0 {
			m.item.Size = int64(len(raw))
		}
	}
	return m
}

// unproven is what is known of who sent a message without its original.
func unproven() authenticate.Result {
	return authenticate.Result{
		SPF: authenticate.Unknown, DKIM: authenticate.Unknown, DMARC: authenticate.Unknown, ARC: authenticate.Unknown, Source: authenticate.FromNone,
	}
}

// chunk is a set of messages that are decided and committed together.
type chunk struct {
	*pass
	folder mailbox.Folder
	mails  []mail
	// skipped are the messages that the account does not give.
	skipped []asideRow

	// again has the messages that are decided again, by identity; nil in a chunk of
	// messages that were read for another reason.
	again map[string]dueMessage
	known map[string]knownMessage
	// joins has the decisions that those about further copies are joined with, by
	// identity.
	joins   map[string]dueMessage
	threads *threads
	senders *senders

	messages  []messageRow
	decisions []decisionRow
	locations []locationRow
	proposals []proposalRow
	touched   []touchedRow
	// back lie again where they could lie before triage or their owner moved them;
	// their owner brought brought back.
	back, brought []uuid.UUID
	// narrowed are messages of which a copy allows less than was proposed.
	narrowed []uuid.UUID
	proposed int
}

// knownMessage is a message that was met before.
type knownMessage struct {
	id uuid.UUID
	// left says that it lay in no folder any more but those to which triage has
	// messages moved, and moved are the actions that were proposed to do that.
	left  bool
	moved []string
	// judged are the copies that its decision joins; empty without one.
	judged []string
}

// store decides about the messages that were never met, and writes all of it.
func (c *chunk) store(ctx context.Context, tx pgx.Tx) error {
	// A transaction that is run again begins anew.
	c.messages, c.decisions, c.locations, c.proposals, c.touched, c.back, c.brought, c.narrowed = nil, nil, nil, nil, nil, nil, nil, nil
	slices.SortStableFunc(c.mails, func(a, b mail) int { return a.item.Received.Compare(b.item.Received) })
	for i := range c.mails {
		m := &c.mails[i]
		m.header, m.counted = identifier(m.message.MessageID), countedOf(m)
		m.named = nil
		for _, id := range slices.Concat(m.message.InReplyTo, m.message.References) {
			if id = identifier(id); id != "" && !slices.Contains(m.named, id) && len(m.named) < maxNamed {
				m.named = append(m.named, id)
			}
		}
	}
	if err := c.load(ctx, tx); err != nil {
		return err
	}
	for i := range c.mails {
		if err := c.contained(func() error { return c.take(&c.mails[i]) }); err != nil {
			return err
		}
	}
	return c.write(ctx, tx)
}

// take adds a message: its location, and if it was never met, the message and
// what is decided about it.
func (c *chunk) take(m *mail) error {
	identity := string(m.message.Identity[:])
	if c.again != nil {
		return c.takeAgain(m, identity)
	}
	if known, ok := c.known[identity]; ok {
		c.met(m, known)
		return c.takeCopy(m, identity)
	}
	m.id = uuid.Must(uuid.NewV7())
	c.known[identity] = knownMessage{id: m.id}
	outgoing := c.folder.Use == mailbox.UseSent
	thread := c.threads.find(m, c.account.Settings.Addresses)
	row := messageRowOf(m, thread.id, outgoing)
	c.locate(m)
	if outgoing {
		row.Awaits = c.asks(m) && c.threads.ask(thread.id, m.item.Received)
		c.senders.wrote(m, thread)
	} else {
		var err error
		if row.Automated, err = c.decide(m, row, thread, nil); err != nil {
			return err
		}
		c.senders.received(row, thread)
	}
	c.messages = append(c.messages, row)
	c.threads.add(row)
	return nil
}

// takeAgain decides again about a message that is due for that. Another one that
// lies in its place by now is none of this chunk's.
func (c *chunk) takeAgain(m *mail, identity string) error {
	due, ok := c.again[identity]
	if !ok || slices.ContainsFunc(c.decisions, func(d decisionRow) bool { return d.Message == due.id }) {
		return nil
	}
	m.id = due.id
	thread := c.threads.find(m, c.account.Settings.Addresses)
	thread.id = due.thread
	_, err := c.decide(m, messageRowOf(m, thread.id, false), thread, &due)
	return err
}

// met adds the location of a message that is known. One that had left was brought
// back if it lies again in a folder to which triage has none moved, whichever
// folder is read first, and triage proposed to move it.
func (c *chunk) met(m *mail, known knownMessage) {
	m.id = known.id
	if known.left && !slices.Contains(movedTo(), c.folder.Use) {
		c.back = append(c.back, known.id)
		if len(known.moved) > 0 {
			c.touched = append(c.touched, touchedRow{Message: known.id, Touched: true, Undone: known.moved})
			c.brought = append(c.brought, known.id)
		}
		c.known[string(m.message.Identity[:])] = knownMessage{id: known.id}
	}
	c.locate(m)
}

// movedTo returns the uses of the folders to which a proposal may move messages.
func movedTo() []mailbox.Use {
	return []mailbox.Use{mailbox.UseArchive, mailbox.UseAll, mailbox.UseJunk, mailbox.UseTrash}
}

// counts returns what became of the messages.
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

// decide judges a message that came in, and adds the decision and its proposals.
// again is what is known of one that was decided before. It reports whether a
// machine sent it.
func (c *chunk) decide(m *mail, row messageRow, t thread, again *dueMessage) (automated bool, err error) {
	about := signal.Context{
		Addresses: c.account.Settings.Addresses, Domains: c.account.Settings.Domains, Contacts: c.contacts,
		Authentication: m.authentication, ReplyToMine: t.replyToMine, OwnerReplied: t.ownerReplied, Now: time.Now(),
	}
	about.Sender, about.List = c.senders.of(row, c.account.Settings)
	target := plan.Target{At: mailbox.State{Location: m.item.Location, Flags: m.item.Flags}, Message: m.message, Built: m.item.Built}
	why, earlier := reasonNew, decide.Earlier{}
	if again != nil {
		// The message itself counts among those that came before it, under the list of
		// the copy that came first.
		about.Sender.Received = max(0, about.Sender.Received-1)
		if again.list == row.List {
			about.List.Received = max(0, about.List.Received-1)
		}
		why, earlier, target.Proposed = again.reason, again.earlier, again.proposed
	}
	found := signal.Find(m.message, about)
	features := c.engine.cfg.Model.Features(m.message, about, found)
	prediction := c.model.Predict(features)
	facts := decide.Facts{
		Headers: decide.HeadersOf(m.message), Folder: c.folder.Use, Flags: m.item.Flags, Authentication: m.authentication,
		Signals: found, Prediction: prediction, Sender: about.Sender, List: about.List, OwnerReplied: t.ownerReplied,
		Amends: t.amends, Earlier: earlier, Built: m.item.Built, Settings: c.account.Settings,
	}
	// A message that nothing proves answers nobody, as one of a machine does not.
	a := m.authentication
	automated = decide.ByMachine(facts) || a.Asked() && !a.Proven() && !a.ListAligned
	facts.FollowUp = c.threads.waits(t.id, m.item.Received, !automated && t.answers)
	asked := c.questions(row, facts, again)
	d := cascade.Decide(facts, asked.replies)
	d.Trace = append(d.Trace, asked.steps...)
	d = again.join(d)
	var proposals []plan.Proposal
	var skips []plan.Skip
	if c.account.Proposes() && !asked.withheld {
		proposals, skips = plan.Plan(d, target, c.account.Proposals)
	}
	decision, err := decisionRowOf(m, d, found, prediction, features, skips)
	if err != nil {
		return automated, err
	}
	decision.Reason, decision.Received = why, row.Received
	asked.note(&decision)
	return automated, c.add(m, row, t, decision, proposals, again)
}

// add adds a decision and its proposals, in place of an earlier one of the chunk
// about another copy of the message.
func (c *chunk) add(m *mail, row messageRow, t thread, decision decisionRow, proposals []plan.Proposal, again *dueMessage) error {
	c.decisions = slices.DeleteFunc(c.decisions, func(d decisionRow) bool { return d.Message == m.id })
	c.proposals = slices.DeleteFunc(c.proposals, func(p proposalRow) bool { return p.Message == m.id })
	next := dueMessage{id: m.id, thread: t.id, list: row.List}
	if again != nil {
		next = *again
		if again.joins() {
			decision.Signals.flag(again.found)
		}
		if again.narrowed(decision.Decision) {
			c.narrowed = append(c.narrowed, m.id)
		}
	}
	next.reason, next.last, next.found, next.replies = reasonCopied, &decision.Decision, decision.Signals, decision.Answers
	next.judged = judgedWith(next.judged, m.counted, decision.Reason)
	decision.Judged = next.judged
	c.joins[string(m.message.Identity[:])] = next
	c.decisions = append(c.decisions, decision)
	for _, p := range proposals {
		proposal, err := proposalRowOf(m, p)
		if err != nil {
			return err
		}
		c.proposals = append(c.proposals, proposal)
	}
	return nil
}

// asks reports whether a message of the owner asks something, so that its owner
// waits for an answer: it has a question, or the models take it for a request.
func (c *chunk) asks(m *mail) bool {
	if endsQuestion(m.message.Body) {
		return true
	}
	about := signal.Context{Addresses: c.account.Settings.Addresses, Domains: c.account.Settings.Domains, Contacts: c.contacts, Now: time.Now()}
	found := signal.Find(m.message, about)
	switch c.model.Predict(c.engine.cfg.Model.Features(m.message, about, found)).Act {
	case classify.Request, classify.Propose, classify.Meet:
		return true
	case classify.Commit, classify.Deliver, classify.Amend, classify.FYI:
	}
	return false
}

// messageRowOf returns a message as it is stored.
func messageRowOf(m *mail, thread uuid.UUID, outgoing bool) messageRow {
	row := messageRow{
		Message: m.id, Identity: hex.EncodeToString(m.message.Identity[:]), Header: m.header, Refs: append([]string{}, m.named...),
		Thread: thread, ThreadSubject: threadSubject(m.message.Subject), Participants: participants(m.message), Outgoing: outgoing,
		Subject: clip(m.message.Subject, maxSubject), Body: clip(m.message.Body, maxBody), Sent: sentAt(m.message.Date), Received: instantOf(m.item.Received),
		List: list(m.message), Size: m.item.Size,
	}
	if len(m.message.From) > 0 {
		row.Sender, row.SenderName = address(m.message.From[0]), clip(m.message.From[0].Name, maxName)
	}
	return row
}
