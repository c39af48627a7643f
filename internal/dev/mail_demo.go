package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// MailReport is the result of triage for the sample mailbox.
type MailReport struct {
	Messages []MailLine `json:"messages"`
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
	// the same sender first.
	want  string
	known int
}

// mailWord is in the body of every sample mail and nowhere else, so that a test
// finds where text of mail goes.
const mailWord = "quillwort"

// The ways in which a message of the sample mailbox ends.
const (
	mailReverted = "archived, and taken back"
	mailHeld     = "waits for a person"
	mailRefused  = "nothing proposed"
)

// authenticated returns the headers of a mail that came from a domain.
func authenticated(domain, result string) string {
	return "Authentication-Results: " + trustedHost + "; spf=" + result + " smtp.mailfrom=" + domain + "; dkim=" + result + " header.d=" + domain +
		"; dmarc=" + result + " header.from=" + domain + "\n" +
		"Received: from out." + domain + " (out." + domain + " [192.0.2.7]) by " + trustedHost + " with ESMTPS; Mon, 02 Mar 2026 08:00:00 +0000\n"
}

// samples are the mails of the sample mailbox.
func samples() []sample {
	return []sample{{
		name: "newsletter", from: "Garden Weekly <news@garden-weekly.example>", subject: "Ten plants for a dry summer", known: 1, want: mailHeld,
		body:    "In this issue: ten plants that need little water, from lavender to sage; how the botanical garden waters its beds; and what our readers grew in April.\n\nYou receive this newsletter because you subscribed to it. Unsubscribe: https://garden-weekly.example/unsubscribe",
		headers: authenticated("garden-weekly.example", "pass") + "List-Id: Garden Weekly <weekly.garden-weekly.example>\nList-Unsubscribe: <https://garden-weekly.example/unsubscribe>\nPrecedence: bulk\n",
	}, {
		name: "request", from: "Sven Aaltonen <sven@brightwater.example>", subject: "Sign the offer for Norland by noon?", known: 1, want: mailRefused,
		body:    "Hi Ada,\n\ncould you please look at the offer for Norland and sign it by noon today? They wait for it, and the price holds until this evening only.\n\nThanks\nSven",
		headers: authenticated("brightwater.example", "pass"),
	}, {
		name: "lure", from: "Brightwater IT <helpdesk@brightwatter.example>", subject: "Your password expires today", want: mailRefused,
		body:    "Dear user,\n\nyour mailbox password expires today. Verify your account within 2 hours or it will be suspended: http://brightwatter.example/login\n\nEnter your password and your one-time code to keep access.\n\nIT help desk",
		headers: authenticated("brightwatter.example", "fail"),
	}, {
		name: "receipt", from: "Northrail Tickets <tickets@northrail.example>", subject: "Your receipt for booking 58213", known: 1, want: mailReverted,
		body:    "Thank you for your booking.\n\nOrder 58213, total 42.00 EUR, paid by card. Your receipt is attached to your account. This is an automated message.",
		headers: authenticated("northrail.example", "pass") + "Auto-Submitted: auto-generated\n",
	}, {
		name: "friend", from: "Mila Okoro <mila.okoro@personal.example>", subject: "Sunday walk", known: 1, want: mailRefused,
		body:    "Hi Ada,\n\nthe weather looks lovely on Sunday. We thought of walking around the lake and having cake afterwards, the children would be happy to see you.\n\nLove, Mila",
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
func (e *Environment) demonstrateMail(ctx context.Context, of tenant, runID string) (MailReport, []string, error) {
	box, err := e.newMailbox(ctx, of)
	if err != nil {
		return MailReport{}, nil, err
	}
	defer box.triage.Close()
	d := &mailDemonstration{mailbox: box, environment: e, tenant: of, runID: runID}
	if d.operator, err = e.Client(of.tokens.Operator); err != nil {
		return MailReport{}, nil, err
	}
	if err := d.deliverAll(ctx); err != nil {
		return MailReport{}, nil, err
	}
	return d.report(ctx)
}

// mailDemonstration is a demonstration on a sample mailbox.
type mailDemonstration struct {
	*mailbox
	environment *Environment
	tenant      tenant
	operator    *client.Client
	runID       string
}

func (d *mailDemonstration) messageID(name string) string {
	return name + "." + d.runID + "@sample.example"
}

// deliverAll delivers earlier mail of the senders, which triage reads first, and
// then the sample mails.
func (d *mailDemonstration) deliverAll(ctx context.Context) error {
	at := time.Now()
	for _, s := range samples() {
		for i := range s.known {
			id := fmt.Sprintf("%s-before-%d", s.name, i)
			if err := d.deliver("1"+id, s.raw(d.messageID(id), fmt.Sprintf("%s (%d)", s.subject, i+1), at.AddDate(0, 0, i-9))); err != nil {
				return err
			}
		}
	}
	if err := d.triage.Once(ctx); err != nil {
		return err
	}
	for _, s := range samples() {
		if err := d.deliver("2"+s.name, s.raw(d.messageID(s.name), s.subject, at)); err != nil {
			return err
		}
	}
	return d.triage.Once(ctx)
}

// report waits for the end of the proposals about each sample mail.
func (d *mailDemonstration) report(ctx context.Context) (r MailReport, wrong []string, err error) {
	for _, s := range samples() {
		line, err := d.line(ctx, s)
		if err != nil {
			return r, nil, fmt.Errorf("the mail %q: %w", s.subject, err)
		}
		if !strings.HasPrefix(line.Result, s.want) {
			wrong = append(wrong, fmt.Sprintf("the mail %q: %s, want %s", s.subject, line.Result, s.want))
		}
		r.Messages = append(r.Messages, line)
	}
	return r, wrong, nil
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
		line.Result = mailRefused
		if phishing {
			line.Result += ": taken for phishing"
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
	return table.Flush()
}
