package mail

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	netmail "net/mail"
	"strings"
	"time"

	"github.com/emersion/go-message"
	gomail "github.com/emersion/go-message/mail"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	identity "github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/source"
)

// draftArgs are the arguments of ToolDraft.
type draftArgs struct {
	Account    string
	To, Cc     []string
	Subject    string
	Text       string
	InReplyTo  string `json:"in_reply_to"`
	References []string
	// automatic is the header Auto-Submitted (RFC 3834), or "".
	automatic string
}

func (s *Source) draft(ctx context.Context, call source.Call, in draftArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		id := draftID(call.Key, in.Account, on.From)
		raw, err := compose(on.From, id, in, time.Time{})
		if err != nil {
			return s.refuse(source.CodeInvalidArgs, "an address is not a single plain address, or the text cannot be written as mail")
		}
		folder, err := on.folder(ctx, mailbox.UseDrafts)
		if errors.Is(err, mailbox.ErrNoFolder) {
			return s.refuse(source.CodeNotFound, "the account has no folder for drafts; name one as folders.drafts in the source's configuration")
		}
		if err != nil {
			return on.failed(ctx, err, false)
		}
		return on.store(ctx, folder, id, raw)
	})
}

// store appends a draft to a folder. The draft of an earlier attempt is reused,
// unless its owner has edited it.
func (s *session) store(ctx context.Context, folder, id string, raw []byte) source.Observation {
	digest := identity.Identify(raw)
	ref := reference{MessageID: id, Identity: hex.EncodeToString(digest[:])}
	flags := mailbox.Flags(mailbox.FlagDraft, mailbox.FlagSeen)
	at, err := s.writer.Append(ctx, folder, flags, raw)
	after := mailbox.State{Location: at, Flags: flags}
	if errors.Is(err, mailbox.ErrExists) {
		after, err = s.find(ctx, ref.at(at))
		if errors.Is(err, mailbox.ErrGone) {
			o := source.Observation{Written: true, Answered: true}.AlreadyDone()
			o.Message = s.source.name + ": an earlier attempt stored the draft, and someone has edited it since"
			return o
		}
		if err != nil {
			return s.failed(ctx, err, false)
		}
	}
	if err != nil {
		return s.failed(ctx, err, true)
	}
	o := answer(result{After: &after, Message: ref.at(after.Location)})
	o.ProviderID = id
	return o
}

// draftID returns the Message-ID of a call's draft, without angle brackets. It
// is the same for every attempt.
func draftID(key, account, from string) string {
	return identity.CallID(key, account, from)
}

// compose returns the bytes of a mail. Those of a draft have no date, so that every
// attempt writes the same bytes; the mail program adds it when the draft is sent.
func compose(from, id string, in draftArgs, date time.Time) ([]byte, error) {
	h, err := header(from, id, in, date)
	if err != nil {
		return nil, err
	}
	h.SetContentType("text/plain", map[string]string{"charset": "utf-8"})
	h.Set("Content-Transfer-Encoding", "quoted-printable")
	var b bytes.Buffer
	w, err := message.CreateWriter(&b, h.Header)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(w, breaks(in.Text))
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// breaks returns a text with the line ends of mail.
func breaks(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// header returns the header of a mail, without the type of its body.
func header(from, id string, in draftArgs, date time.Time) (h gomail.Header, _ error) {
	if !date.IsZero() {
		h.SetDate(date)
	}
	lists := map[string][]string{"To": in.To, "Cc": in.Cc}
	if from != "" {
		lists["From"] = []string{from}
	}
	for _, name := range []string{"Cc", "To", "From"} { // fields are written in reverse order
		list, err := addresses(lists[name])
		if err != nil {
			return h, err
		}
		if len(list) > 0 {
			h.SetAddressList(name, list)
		}
	}
	h.SetSubject(in.Subject)
	h.SetMessageID(id)
	if in.InReplyTo != "" {
		h.SetMsgIDList("In-Reply-To", []string{in.InReplyTo})
	}
	if len(in.References) > 0 {
		h.SetMsgIDList("References", in.References)
	}
	if in.automatic != "" {
		h.Set("Auto-Submitted", in.automatic)
	}
	h.Set("Mime-Version", "1.0")
	return h, nil
}

// addresses parses addresses for a header field. Each text must be an address
// without a name.
func addresses(texts []string) ([]*gomail.Address, error) {
	var list []*gomail.Address
	for _, text := range texts {
		at, err := netmail.ParseAddress(text)
		if err != nil || at.Name != "" || at.Address != text {
			return nil, errors.New("not an address")
		}
		list = append(list, at)
	}
	return list, nil
}
