package mail

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/emersion/go-message"

	"github.com/countersign-dev/countersign/internal/mail/invitation"
	parsed "github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/visible"
)

// rsvpArgs are the arguments of ToolRSVP.
type rsvpArgs struct {
	messageArgs
	Answer invitation.Answer
}

// maxSubject bounds the bytes of the subject of an answer.
const maxSubject = 800

// rsvp answers the invitation in a message (RFC 6047). Everything that the answer
// rests on is read from the stored message and checked again.
func (s *Source) rsvp(ctx context.Context, call source.Call, in rsvpArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		raw, now, err := on.read(ctx, in.Message)
		if err != nil {
			return on.failed(ctx, err, false)
		}
		if refused := on.junk(ctx, now); refused != nil {
			return *refused
		}
		m, at := parsed.Parse(raw), time.Now()
		event, err := invitation.Read(raw, m, on.own(), at)
		if err != nil {
			return s.refuse(source.CodeRejected, err.Error())
		}
		if refused := on.proven(ctx, raw, m); refused != nil {
			return *refused
		}
		reply, err := event.Reply(in.Answer, at)
		if err != nil {
			return s.refuse(source.CodeRejected, "the invitation cannot be answered")
		}
		return on.deliver(ctx, draftID(call.Key, in.Account, on.From), []string{event.Organizer}, func(id string) ([]byte, error) {
			return composeReply(id, in.Answer, m, event, reply, at)
		})
	})
}

// composeReply returns the bytes of the mail that carries the answer to an
// invitation.
func composeReply(id string, answer invitation.Answer, m *parsed.Message, event invitation.Invitation, reply []byte, at time.Time) ([]byte, error) {
	title := strings.ToUpper(string(answer[:1])) + string(answer[1:])
	subject, _ := visible.Cut(title+": "+strings.Join(strings.Fields(m.Subject), " "), maxSubject)
	in := draftArgs{To: []string{event.Organizer}, Subject: subject}
	if oneID(m.MessageID) {
		in.InReplyTo, in.References = m.MessageID, []string{m.MessageID}
	}
	h, err := header(event.Attendee, id, in, at)
	if err != nil {
		return nil, err
	}
	h.SetContentType("multipart/alternative", nil)
	var b bytes.Buffer
	w, err := message.CreateWriter(&b, h.Header)
	if err != nil {
		return nil, err
	}
	part := func(kind string, params map[string]string, text string) error {
		var h message.Header
		h.SetContentType(kind, params)
		h.Set("Content-Transfer-Encoding", "base64")
		p, err := w.CreatePart(h)
		if err != nil {
			return err
		}
		_, err = io.WriteString(p, text)
		return errors.Join(err, p.Close())
	}
	err = errors.Join(
		part("text/plain", map[string]string{"charset": "utf-8"}, title+": "+event.Attendee+"\r\n"),
		part("text/calendar", map[string]string{"charset": "utf-8", "method": "REPLY"}, string(reply)),
		w.Close(),
	)
	if err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// oneID reports whether a text is a Message-ID that a header can repeat.
func oneID(id string) bool {
	return strings.Contains(id, "@") && len(id) <= 998 && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '<' || r == '>' })
}
