package subscription

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// blockMail begins the id of the block in which WithMail shows a message; the id
	// of the action follows.
	blockMail = "countersign_mail."
	// mailLater is the text of the block as it is stored.
	mailLater = "Mail: shown where the message is sent"
)

// mail is the part of an action's mail that a message in Slack shows.
type mail struct{ sender, name, subject string }

// text returns the sender and the subject on a line each, escaped and cut.
func (m mail) text() string {
	return "From: " + field(strings.TrimSpace(m.name+" <"+m.sender+">")) + "\nSubject: " + field(m.subject)
}

// WithMail returns the arguments of a delivery to Slack with sender and subject of
// the mail, if its subscription shows them, and whether they differ from the
// stored ones. Nothing stores these arguments, nor what Slack answers to them. Only
// deliveries of Countersign's own are changed: anybody may write such a block. inTx runs a
// transaction of a worker.
func WithMail(ctx context.Context, inTx func(context.Context, func(pgx.Tx) error) error, it *outbox.Item) (json.RawMessage, bool, error) {
	of, delivery := settings.Delivery(it.Automation)
	if !delivery || it.Tool != slack.ToolMessageSend && it.Tool != slack.ToolMessageUpdate || !bytes.Contains(it.Args, []byte(blockMail)) {
		return it.Args, false, nil
	}
	var sent post
	if err := json.Unmarshal(it.Args, &sent); err != nil {
		return it.Args, false, err
	}
	at := slices.IndexFunc(sent.Blocks, func(b block) bool { return strings.HasPrefix(b.BlockID, blockMail) })
	if at < 0 {
		return it.Args, false, nil
	}
	var about envelope.ActionID
	if err := about.UnmarshalText([]byte(strings.TrimPrefix(sent.Blocks[at].BlockID, blockMail))); err != nil {
		return it.Args, false, err
	}
	var m mail
	var found bool
	err := inTx(ctx, func(tx pgx.Tx) (err error) {
		m, found, err = mailOf(ctx, tx, it.Tenant, of, about)
		return err
	})
	if err != nil || !found {
		return it.Args, false, err
	}
	sent.Blocks[at].Text = plain(m.text())
	args, err := json.Marshal(sent)
	if err != nil {
		return it.Args, false, err
	}
	return args, true, nil
}
