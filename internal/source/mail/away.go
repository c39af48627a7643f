package mail

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/autoreply"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	parsed "github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/source"
)

// awayArgs are the arguments of ToolAway. A grant fixes all but To and Message.
type awayArgs struct {
	messageArgs
	To            string
	Subject, Text string
	Since, Until  time.Time
}

// maxReferences bounds the messages in the References of an answer, of which it keeps
// the newest.
const maxReferences = 20

// away answers a message in its owner's absence (RFC 3834), each sender once in a
// period. Everything that the answer rests on is read from the stored message and
// checked again.
func (s *Source) away(ctx context.Context, _ source.Call, in awayArgs) source.Observation {
	now := time.Now()
	if now.Before(in.Since) || !now.Before(in.Until) {
		return s.refuse(source.CodeRejected, "the owner is not away at this time")
	}
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		raw, state, err := on.read(ctx, in.Message)
		if err != nil {
			return on.failed(ctx, err, false)
		}
		if refused := on.junk(ctx, state); refused != nil {
			return *refused
		}
		m := parsed.Parse(raw)
		to, err := autoreply.Recipient(m, on.own())
		switch {
		case err != nil:
			return s.refuse(source.CodeRejected, err.Error())
		case !strings.EqualFold(to, in.To):
			return s.refuse(source.CodeRejected, "the recipient of the answer is not the sender of the message")
		case mailbox.HasFlag(state.Flags, mailbox.FlagAnswered):
			return s.refuse(source.CodeRejected, "the owner has answered the message")
		}
		if refused := on.proven(ctx, raw, m); refused != nil {
			return *refused
		}
		reply := draftArgs{To: []string{in.To}, Subject: in.Subject, Text: in.Text, automatic: "auto-replied"}
		for _, id := range append(slices.Clone(m.References), m.MessageID) {
			if oneID(id) {
				reply.References = append(reply.References, id)
			}
		}
		reply.References = reply.References[max(0, len(reply.References)-maxReferences):]
		if oneID(m.MessageID) {
			reply.InReplyTo = m.MessageID
		}
		return on.deliver(ctx, awayID(in.Account, in.To, in.Since, on.From), []string{in.To}, func(id string) ([]byte, error) {
			return compose(on.From, id, reply, now)
		})
	})
}

// awayID returns the Message-ID of the answer to a sender in a period.
func awayID(account, to string, since time.Time, from string) string {
	return draftID("away\x00"+since.UTC().Format(time.RFC3339Nano)+"\x00"+strings.ToLower(to), account, from)
}

// own returns the addresses of the owner.
func (a *account) own() []string { return append(slices.Clone(a.Addresses), a.From) }

// proven refuses to answer a message unless authentication proves its sender: by the
// results of the trusted host if it wrote any, else by a signature.
func (s *session) proven(ctx context.Context, raw []byte, m *parsed.Message) *source.Observation {
	found := authenticate.Check(ctx, raw, m, authenticate.Config{TrustedHost: s.TrustedHost})
	proven := found.Proven()
	if found.Source != authenticate.FromHeader {
		var err error
		if proven, err = authenticate.SenderSigned(ctx, raw, m, authenticate.Config{Resolver: s.source.resolver}); err != nil {
			return new(s.source.noKey())
		}
	}
	if !proven {
		return new(s.source.refuse(source.CodeRejected, "authentication does not prove the sender of the message"))
	}
	return nil
}
