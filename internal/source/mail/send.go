package mail

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/source"
)

// sentArgs are the arguments of ToolSent.
// Those of ToolAway give recipient and period in place of the key.
type sentArgs struct {
	Account string
	Key     string
	To      string
	Since   time.Time
}

// send sends a mail.
func (s *Source) send(ctx context.Context, call source.Call, in draftArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		recipients := slices.Compact(slices.Sorted(slices.Values(slices.Concat(in.To, in.Cc))))
		return on.deliver(ctx, draftID(call.Key, in.Account, on.From), recipients, func(id string) ([]byte, error) {
			return compose(on.From, id, in, time.Now())
		})
	})
}

// deliver sends a mail and stores a copy in the folder for sent mail. id is its
// Message-ID, which is derived from the key of the call, so that a mail of an
// earlier attempt is found there, and not sent again.
func (s *session) deliver(ctx context.Context, id string, recipients []string, compose func(id string) ([]byte, error)) source.Observation {
	if s.Submitter.Host == "" || s.From == "" {
		return s.source.refuse(source.CodeUnsupported, "the account has no server or no address for outgoing mail; set smtp and from in the source's configuration")
	}
	folder, err := s.folder(ctx, mailbox.UseSent)
	if errors.Is(err, mailbox.ErrNoFolder) {
		return s.source.refuse(source.CodeNotFound, "the account has no folder for sent mail; name one as folders.sent in the source's configuration")
	}
	if err != nil {
		return s.failed(ctx, err, false)
	}
	raw, err := compose(id)
	if err != nil {
		return s.source.refuse(source.CodeInvalidArgs, "an address is not a single plain address, or the text cannot be written as mail")
	}
	switch _, err := s.writer.Locate(ctx, folder, id); {
	case err == nil:
		return sent(id, true).AlreadyDone()
	case !errors.Is(err, mailbox.ErrGone):
		return s.failed(ctx, err, false)
	}
	if o := s.source.submit(ctx, s.Submitter, s.From, recipients, raw); o != nil {
		return *o
	}
	_, err = s.writer.Append(ctx, folder, mailbox.Flags(mailbox.FlagSeen), raw)
	stored := err == nil || errors.Is(err, mailbox.ErrExists) // some servers store the copy themselves
	if !stored {
		_ = s.failed(ctx, err, true) // notes whether the connection broke
	}
	o := sent(id, stored)
	if !stored {
		o.Message = s.source.name + ": the mail was sent, and its copy could not be stored in the folder for sent mail"
	}
	return o
}

// sent returns the observation of a mail that was sent.
func sent(id string, stored bool) source.Observation {
	result := []byte(`{"stored":false}`)
	if stored {
		result = []byte(`{"stored":true}`)
	}
	return source.Observation{Written: true, Answered: true, Result: result, ProviderID: id}
}

// wasSent reports whether the folder for sent mail has the mail of a call, for the
// reconcile rule of ToolSend.
func (s *Source) wasSent(ctx context.Context, _ source.Call, in sentArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		folder, err := on.folder(ctx, mailbox.UseSent)
		if err == nil {
			id := draftID(in.Key, in.Account, on.From)
			if in.Key == "" {
				id = awayID(in.Account, in.To, in.Since, on.From)
			}
			_, err = on.writer.Locate(ctx, folder, id)
		}
		switch {
		case err == nil:
			return source.Observation{Written: true, Answered: true, Result: []byte(`{"found":true}`)}
		case errors.Is(err, mailbox.ErrGone):
			return source.Observation{Written: true, Answered: true, Result: []byte(`{"found":false}`)}
		}
		return on.failed(ctx, err, false)
	})
}
