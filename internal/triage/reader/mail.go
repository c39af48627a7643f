package reader

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/thread"
)

// mail is a message after reading.
type mail struct {
	item           mailbox.Item
	message        *message.Message
	raw            []byte
	authentication authenticate.Result
	id             uuid.UUID
	values         thread.Message
	// counted is a digest of the header fields and the authentication that
	// decisions use, in which copies of a message may differ.
	counted string
}

// newMail returns a message after reading. If the reader built its bytes, a
// warning reports that to people.
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

// unproven is the authentication of a message without its original.
func unproven() authenticate.Result {
	return authenticate.Result{
		SPF: authenticate.Unknown, DKIM: authenticate.Unknown, DMARC: authenticate.Unknown, ARC: authenticate.Unknown, Source: authenticate.FromNone,
	}
}

// read reads and parses messages, and authenticates their senders.
func (c *chunk) read(ctx context.Context, items []mailbox.Item, now time.Time) error {
	if len(items) == 0 {
		return nil // all of them are kept
	}
	err := c.reader.mailbox.Read(ctx, items, func(it mailbox.Item, raw []byte, err error) error {
		switch {
		case errors.Is(err, mailbox.ErrGone):
		case errors.Is(err, mailbox.ErrTooLarge), errors.Is(err, mailbox.ErrUnreadable):
			c.skipped = append(c.skipped, asideOf(it, stepRead, measure.Problem(err)))
		case err != nil:
			return err
		default:
			return c.reader.contained(func() error {
				c.mails = append(c.mails, newMail(it, raw))
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return unread(ctx, err)
	}
	for i := range c.mails {
		if err := c.reader.contained(func() error { return c.authenticate(ctx, &c.mails[i], now) }); err != nil {
			return err
		}
	}
	return ctx.Err() // incomplete DNS queries must not influence a decision
}

// authenticate checks the sender of a message, which requires its original.
func (c *chunk) authenticate(ctx context.Context, m *mail, now time.Time) error {
	if m.item.Built {
		m.raw, m.authentication = nil, unproven()
		return nil
	}
	m.authentication = authenticate.Check(ctx, m.raw, m.message, authenticate.Config{
		TrustedHost: c.lease.Account.Connection.TrustedHost, Resolver: c.reader.cfg.Resolver, Now: now,
	})
	m.raw = nil
	return nil
}
