package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/dav"
	"github.com/countersign-dev/countersign/internal/triage/brief"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

// MailReport is the result of triage for the sample mailbox.
type MailReport struct {
	Messages []MailLine `json:"messages"`
	// Found lists the findings in the messages, such as receipts.
	Found []string `json:"found"`
	// Calendar is the folder with the reminders, and Reminders are they.
	Calendar  string   `json:"calendar"`
	Reminders []string `json:"reminders"`
	// Brief is the brief of the owner of the mailbox.
	Brief wire.TriageBrief `json:"brief"`
}

// MailLine is one message of the sample mailbox.
type MailLine struct {
	From    string `json:"from"`
	Subject string `json:"subject"`
	Cohort  string `json:"cohort"`
	Bucket  string `json:"bucket"`
	// Result is the end of the message's action.
	Result string `json:"result"`
	// Actions are the ids of the proposed actions.
	Actions []string `json:"actions"`
}

// sample is a mail of the sample mailbox, and how it must end.
type sample struct {
	name, from, subject, body, headers string
	// want is the beginning of the expected result; known delivers earlier mail of
	// the same sender first, with a text of its own if earlier is set.
	want    string
	known   int
	earlier string
	// found is a finding in the mail; tagged has its owner tag it.
	found  string
	tagged bool
}

// mailWord is in the body of every sample mail and nowhere else, so that a test
// finds where text of mail goes.
const mailWord = "quillwort"

// taggedSubject is the subject of the mail that its owner tags.
const taggedSubject = "Sunday walk"

// The ways in which a message of the sample mailbox ends.
const (
	mailReverted = "archived, and taken back"
	mailHeld     = "waits for a person"
	mailWaits    = "stays in the inbox for its owner"
	mailRefused  = "nothing proposed"
	mailTagged   = "tagged by its owner: a reminder, approved"
)

// thanks is a text to which nobody owes an answer.
const thanks = "Hi Ada,\n\nthank you for yesterday. It was good to see you."

// authenticated returns the headers of a mail that came from a domain.
func authenticated(domain, result string) string {
	return "Authentication-Results: " + trustedHost + "; spf=" + result + " smtp.mailfrom=" + domain + "; dkim=" + result + " header.d=" + domain +
		"; dmarc=" + result + " header.from=" + domain + "\n" +
		"Received: from out." + domain + " (out." + domain + " [192.0.2.7]) by " + trustedHost + " with ESMTPS; Mon, 02 Mar 2026 08:00:00 +0000\n"
}

// samples are the mails of the sample mailbox, which arrive at a time.
func samples(at time.Time) []sample {
	sunday := at.AddDate(0, 0, 7-int(at.Weekday())).Format("2 January 2006")
	return []sample{{
		name: "newsletter", from: "Garden Weekly <news@garden-weekly.example>", subject: "Ten plants for a dry summer", known: 1, want: mailHeld,
		body:    "In this issue: ten plants that need little water, from lavender to sage; how the botanical garden waters its beds; and what our readers grew in April.\n\nYou receive this newsletter because you subscribed to it. Unsubscribe: https://garden-weekly.example/unsubscribe",
		headers: authenticated("garden-weekly.example", "pass") + "List-Id: Garden Weekly <weekly.garden-weekly.example>\nList-Unsubscribe: <https://garden-weekly.example/unsubscribe>\nPrecedence: bulk\n",
	}, {
		name: "request", from: "Sven Aaltonen <sven@brightwater.example>", subject: "Sign the offer for Norland by noon?", known: 1, earlier: thanks, want: mailWaits,
		body:    "Hi Ada,\n\ncould you please look at the offer for Norland and sign it by noon today? They wait for it, and the price holds until this evening only.\n\nThanks\nSven",
		headers: authenticated("brightwater.example", "pass"),
	}, {
		name: "lure", from: "Brightwater IT <helpdesk@brightwatter.example>", subject: "Your password expires today", want: mailRefused,
		body:    "Dear user,\n\nyour mailbox password expires today. Verify your account within 2 hours or it will be suspended: http://brightwatter.example/login\n\nEnter your password and your one-time code to keep access.\n\nIT help desk",
		headers: authenticated("brightwatter.example", "fail"),
	}, {
		name: "receipt", from: "Northrail Tickets <tickets@northrail.example>", subject: "Your receipt for booking 58213", known: 1, want: mailReverted, found: "receipt",
		body:    "Thank you for your booking.\n\nOrder number: 58213\nTotal paid: 42.00 EUR\n\nYour receipt is attached to your account. This is an automated message.",
		headers: authenticated("northrail.example", "pass") + "Auto-Submitted: auto-generated\n",
	}, {
		name: "friend", from: "Mila Okoro <mila.okoro@personal.example>", subject: taggedSubject, known: 1, earlier: thanks, want: mailTagged, tagged: true,
		body:    "Hi Ada,\n\nthe weather looks lovely on Sunday. We thought of walking around the lake on " + sunday + " at 15:00 and having cake afterwards, the children would be happy to see you.\n\nLove, Mila",
		headers: authenticated("personal.example", "pass"),
	}}
}

// raw returns the bytes of a mail.
func (s sample) raw(id, subject string, at time.Time) string {
	return s.headers + "Message-ID: <" + id + ">\nDate: " + at.Format(time.RFC1123Z) + "\nFrom: " + s.from + "\nTo: Ada <" + mailOwner + ">\nSubject: " + subject +
		"\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n" + s.body + "\n\n" + mailWord + "\n"
}

// demonstrateMail runs triage on a sample mailbox, and reports the result for
// each message.
func (e *Environment) demonstrateMail(ctx context.Context, of tenant, runID string) (r MailReport, wrong []string, err error) {
	box, err := e.newMailbox(ctx, of)
	if err != nil {
		return r, nil, err
	}
	defer box.triage.Close()
	d := &mailDemonstration{mailbox: box, environment: e, tenant: of, runID: runID, mails: samples(time.Now())}
	if d.operator, err = e.Client(of.tokens.Operator); err != nil {
		return r, nil, err
	}
	if d.owner, err = e.Client(of.tokens.Owner); err != nil {
		return r, nil, err
	}
	if d.calendar, err = e.startCalendar(ctx); err != nil {
		return r, nil, err
	}
	defer func() { err = errors.Join(err, d.calendar.close()) }()
	if err := d.calendar.register(ctx, e, of); err != nil {
		return r, nil, fmt.Errorf("set up the calendar: %w", err)
	}
	if err := d.deliverAll(ctx); err != nil {
		return r, nil, err
	}
	return d.report(ctx)
}

// mailDemonstration is a demonstration on a sample mailbox.
type mailDemonstration struct {
	*mailbox
	environment     *Environment
	tenant          tenant
	operator, owner *client.Client
	calendar        *calendar
	runID           string
	mails           []sample
	reminders       []string
}

func (d *mailDemonstration) messageID(name string) string {
	return name + "." + d.runID + "@sample.example"
}

// deliverAll delivers earlier mail of the senders, which triage reads first, and
// then the sample mails. Their owner tags some of them afterwards.
func (d *mailDemonstration) deliverAll(ctx context.Context) error {
	at := time.Now()
	if err := d.nameTag(tag.CreateReminder); err != nil {
		return err
	}
	for _, s := range d.mails {
		for i := range s.known {
			id, before, subject := fmt.Sprintf("%s-before-%d", s.name, i), at.AddDate(0, 0, i-9), fmt.Sprintf("%s (%d)", s.subject, i+1)
			if s.earlier != "" {
				s.body, subject = s.earlier, "Thank you"
			}
			if err := d.deliver("1"+id, s.raw(d.messageID(id), subject, before), before); err != nil {
				return err
			}
		}
	}
	if err := d.triage.Once(ctx); err != nil {
		return err
	}
	for i, s := range d.mails {
		at := at.Add(-time.Duration(i) * time.Minute)
		if err := d.deliver("2"+s.name, s.raw(d.messageID(s.name), s.subject, at), at); err != nil {
			return err
		}
	}
	if err := d.triage.Once(ctx); err != nil {
		return err
	}
	for _, s := range d.mails {
		if !s.tagged {
			continue
		}
		if err := d.tag("2" + s.name); err != nil {
			return fmt.Errorf("tag the mail %q: %w", s.subject, err)
		}
	}
	return d.triage.Once(ctx)
}

// report waits for the end of the proposals about each sample mail, and reads the
// findings and the brief.
func (d *mailDemonstration) report(ctx context.Context) (r MailReport, wrong []string, err error) {
	for _, s := range d.mails {
		line, err := d.line(ctx, s)
		if err != nil {
			return r, nil, fmt.Errorf("the mail %q: %w", s.subject, err)
		}
		if !strings.HasPrefix(line.Result, s.want) {
			wrong = append(wrong, fmt.Sprintf("the mail %q: %s, want %s", s.subject, line.Result, s.want))
		}
		r.Messages = append(r.Messages, line)
		found, err := d.found(ctx, s)
		if err != nil {
			return r, nil, fmt.Errorf("the mail %q: %w", s.subject, err)
		}
		if s.found != "" && !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, s.found+" ") }) {
			wrong = append(wrong, fmt.Sprintf("the mail %q: found %q, want a %s", s.subject, found, s.found))
		}
		r.Found = append(r.Found, found...)
	}
	r.Calendar, r.Reminders = d.calendar.dir, d.reminders
	// The mails that an agent moved are back, and the ends of tags are taken into account.
	if err := d.triage.Once(ctx); err != nil {
		return r, nil, err
	}
	r.Brief, err = d.owner.TriageBrief(ctx, mailAccount, client.TriageBriefFilter{Kind: string(brief.Evening), Mail: true})
	return r, wrong, err
}

// found returns the findings in a mail, one a line.
func (d *mailDemonstration) found(ctx context.Context, s sample) (lines []string, err error) {
	page, err := d.owner.TriageMessages(ctx, client.TriageMessageFilter{HeaderID: d.messageID(s.name)})
	if err != nil || len(page.Items) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%d messages", len(page.Items)))
	}
	message, err := d.owner.TriageMessage(ctx, page.Items[0].ID)
	for _, f := range message.Findings {
		var values []string
		for _, v := range f.Fields {
			values = append(values, v.Name+" "+v.Value)
		}
		lines = append(lines, f.Kind+" of "+strings.Join(values, ", "))
	}
	return lines, err
}

// line returns the result for a mail. An archived mail is moved back.
func (d *mailDemonstration) line(ctx context.Context, s sample) (line MailLine, err error) {
	line = MailLine{From: s.from, Subject: s.subject, Actions: []string{}}
	var phishing bool
	err = postgres.InTx(ctx, d.environment.pool, postgres.API(d.tenant.id), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT d.cohort, d.bucket, (d.signals ->> 'phishing')::boolean,
				ARRAY(SELECT p.proposal_id::text FROM triage_proposals p WHERE p.tenant_id = m.tenant_id AND p.message_id = m.message_id ORDER BY p.action)
			FROM triage_messages m JOIN triage_decisions d ON d.tenant_id = m.tenant_id AND d.message_id = m.message_id
			WHERE m.tenant_id = $1 AND m.header_id = $2`, d.tenant.id.String(), d.messageID(s.name)).Scan(&line.Cohort, &line.Bucket, &phishing, &line.Actions)
	})
	if err != nil {
		return line, err
	}
	if len(line.Actions) == 0 {
		switch line.Result = mailRefused; {
		case phishing:
			line.Result += ": taken for phishing"
		case decide.Bucket(line.Bucket).NeedsOwner():
			line.Result = mailWaits
		}
		return line, nil
	}
	var results []string
	for _, text := range line.Actions {
		result, err := d.follow(ctx, text, d.messageID(s.name))
		if err != nil {
			return line, err
		}
		results = append(results, result)
	}
	line.Result = strings.Join(results, "; ")
	return line, nil
}

// follow waits for an action to end or to wait for a person, and reverts it if it
// archived a mail.
func (d *mailDemonstration) follow(ctx context.Context, text, messageID string) (string, error) {
	parsed, err := uuid.Parse(text)
	if err != nil {
		return "", err
	}
	id := envelope.ActionID(parsed)
	action, err := d.settled(ctx, id)
	if err != nil {
		return "", err
	}
	if action.Envelope.Tool.Name == dav.ToolReminder {
		return d.remind(ctx, action)
	}
	verb := map[string]string{"message.archive": "archived", "message.label": "labelled", "message.flag": "flagged", "message.move": "moved"}[action.Envelope.Tool.Name]
	switch {
	case action.Phase == envelope.PhasePending:
		return mailHeld + " before it is " + verb, nil
	case action.Phase != envelope.PhaseCompleted:
		return fmt.Sprintf("%s: %s", action.Envelope.Tool.Name, action.Phase), nil
	case verb != "archived":
		return verb, nil
	case !d.contains(".Archive", messageID) || d.contains("", messageID):
		return "archived, and the mail is not in the archive", nil
	}
	reversal, err := d.operator.Revert(ctx, id)
	if err != nil {
		return "", err
	}
	if _, err := d.settled(ctx, reversal.Envelope.ActionID); err != nil {
		return "", err
	}
	if !d.contains("", messageID) || d.contains(".Archive", messageID) {
		return "archived, and not back in the inbox", nil
	}
	return mailReverted, nil
}

// remind approves the reminder of a tag, and looks into the calendar.
func (d *mailDemonstration) remind(ctx context.Context, action wire.Action) (string, error) {
	if action.Phase != envelope.PhasePending {
		return fmt.Sprintf("%s: %s, want a person to be asked", action.Envelope.Tool.Name, action.Phase), nil
	}
	action, err := d.operator.Approve(ctx, action.Envelope.ActionID, wire.Approval{Note: "fine"}, waitFor)
	if err != nil {
		return "", err
	}
	var made struct{ UID string }
	if err := json.Unmarshal(action.Envelope.Result.Output, &made); err != nil {
		return fmt.Sprintf("%s: %s", action.Envelope.Tool.Name, action.Phase), nil
	}
	title, start, err := d.calendar.item(made.UID)
	if err != nil {
		return "", fmt.Errorf("read the calendar: %w", err)
	}
	if at, err := time.Parse("20060102T150405Z", start); err == nil {
		start = at.Format("2 January 2006 15:04 MST")
	}
	d.reminders = append(d.reminders, fmt.Sprintf("%s.ics  %s, %s", made.UID, title, start))
	return mailTagged, nil
}

// settled waits until a proposal is an action that has ended or waits for a
// person.
func (d *mailDemonstration) settled(ctx context.Context, id envelope.ActionID) (wire.Action, error) {
	ctx, cancel := context.WithTimeout(ctx, waitFor)
	defer cancel()
	for {
		action, err := d.operator.Action(ctx, id)
		var problem *client.Problem
		switch {
		case errors.As(err, &problem) && problem.Status == http.StatusNotFound:
		case err != nil:
			return action, err
		case action.Phase != envelope.PhaseApproved && action.Phase != envelope.PhaseExecuting:
			return action, nil
		}
		select {
		case <-ctx.Done():
			return action, fmt.Errorf("the action %s has not ended after %v", id, waitFor)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// write prints the result for each message.
func (r MailReport) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MAIL FROM\tSUBJECT\tCOHORT\tBUCKET\tRESULT")
	for _, m := range r.Messages {
		from, _, _ := strings.Cut(m.From, " <")
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", from, m.Subject, m.Cohort, m.Bucket, m.Result)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nFound in the mails:\n")
	for _, line := range r.Found {
		fmt.Fprintf(w, "  %s\n", line)
	}
	fmt.Fprintf(w, "\nReminders in %s:\n", r.Calendar)
	for _, line := range r.Reminders {
		fmt.Fprintf(w, "  %s\n", line)
	}
	_, err := fmt.Fprintf(w, "\n%s", brief.Text(r.Brief))
	return err
}
