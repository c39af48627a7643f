package brief

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// Mailed are the briefs about an account that were proposed as mails, by Message-ID
// without its domain. Triage leaves such a mail out.
type Mailed map[string]mailed

type mailed struct{ subject, text string }

// MailedOf returns the briefs about an account that were proposed as mails in the last
// 30 days, if one of the messages may be one: it is from an address of the owner.
func MailedOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, own []string, among []*message.Message) (Mailed, error) {
	if !slices.ContainsFunc(among, func(m *message.Message) bool { return len(m.From) == 1 && isOwn(own, m.From[0].Addr) }) {
		return nil, nil
	}
	rows, err := dbsqlc.New().TriageBriefsMailed(ctx, tx, &dbsqlc.TriageBriefsMailedParams{TenantID: tenant, AccountID: account})
	all := make(Mailed, len(rows))
	for _, r := range rows {
		id, _, _ := strings.Cut(message.CallID(envelope.Key(tenant, envelope.ActionID(r.ProposalID)), r.Account, ""), "@")
		all[id] = mailed{r.Subject, r.Text}
	}
	return all, err
}

// Has reports whether a message is a brief. Its sender has to have the Message-ID, which
// only the record of the action leads to. Who has it from an answer to a brief cannot put
// another text under it.
func (b Mailed) Has(m *message.Message) bool {
	id, _, _ := strings.Cut(m.MessageID, "@")
	is, ok := b[id]
	return ok && len(m.InReplyTo)+len(m.References)+len(m.Attachments)+len(m.Hidden)+m.Forms+m.Pixels == 0 && m.Calendar == "" &&
		words(m.Subject) == words(is.subject) && words(m.Text) == words(plainText(is.text))
}

// plainText returns a text as it is read in a mail.
func plainText(text string) string {
	return message.Parse([]byte("Content-Type: text/plain; charset=utf-8\r\n\r\n" + text)).Text
}

// words returns a text without the spaces and line ends that servers may change.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }
