package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

const (
	// oneClick is the body of the request and the value of List-Unsubscribe-Post
	// (RFC 8058, section 3.1 and 3.2).
	oneClick = "List-Unsubscribe=One-Click"
	// maxUnsubscribeURL bounds the address.
	maxUnsubscribeURL = 2000
	// unsubscribeTime bounds the request, and maxUnsubscribeAnswer the bytes of its
	// answer that are read, and ignored.
	unsubscribeTime      = 10 * time.Second
	maxUnsubscribeAnswer = 4 << 10
)

// messageArgs are the arguments of tools that only read a message.
type messageArgs struct {
	Account string
	Message reference
}

// read returns the referenced message with its state.
func (s *session) read(ctx context.Context, r reference) (raw []byte, now mailbox.State, err error) {
	if now, err = s.find(ctx, r); err == nil {
		raw, err = s.writer.Content(ctx, now.Location)
	}
	return raw, now, err
}

// unsubscribe requests the end of a subscription from the sender of a list, by RFC
// 8058. Everything that the request rests on is read from the stored message and
// checked again.
func (s *Source) unsubscribe(ctx context.Context, _ source.Call, in messageArgs) source.Observation {
	ctx, cancel := context.WithTimeout(ctx, unsubscribeTime+maxWait)
	defer cancel()
	var to *url.URL
	o := s.with(ctx, in.Account, func(on *session) source.Observation {
		raw, now, err := on.read(ctx, in.Message)
		if err != nil {
			return on.failed(ctx, err, false)
		}
		at, refused := on.unsubscribeAt(ctx, raw, now)
		if refused != nil {
			return *refused
		}
		to = at
		return source.Observation{}
	})
	if to == nil {
		return o
	}
	return s.postUnsubscribe(ctx, to)
}

// unsubscribeAt returns the address for unsubscribing from the list of a message,
// or why there is none.
func (s *session) unsubscribeAt(ctx context.Context, raw []byte, now mailbox.State) (*url.URL, *source.Observation) {
	refuse := func(why string) (*url.URL, *source.Observation) {
		return nil, new(s.source.refuse(source.CodeRejected, why))
	}
	if refused := s.junk(ctx, now); refused != nil {
		return nil, refused
	}
	m := message.Parse(raw)
	to, why := unsubscribeURL(m)
	if why != "" {
		return refuse(why)
	}
	signed, err := authenticate.UnsubscribeSigned(ctx, raw, m, authenticate.Config{Resolver: s.source.resolver})
	switch {
	case err != nil:
		return nil, new(s.source.noKey())
	case !signed:
		return refuse("no valid DKIM signature of the sender's domain covers List-Unsubscribe and List-Unsubscribe-Post")
	}
	return to, nil
}

// junk refuses to answer a message that is marked as junk or phishing.
func (s *session) junk(ctx context.Context, now mailbox.State) *source.Observation {
	flagged := func(flag string) bool {
		return strings.EqualFold(flag, "$Phishing") || strings.EqualFold(flag, "$Junk") || strings.EqualFold(flag, "Junk")
	}
	junk, err := s.folder(ctx, mailbox.UseJunk)
	if err != nil && !errors.Is(err, mailbox.ErrNoFolder) {
		return new(s.failed(ctx, err, false))
	}
	if now.Folder == junk || slices.ContainsFunc(now.Flags, flagged) {
		return new(s.source.refuse(source.CodeRejected, "the message is marked as junk or phishing, and an answer would tell its sender that it was read"))
	}
	return nil
}

// noKey returns the observation of a call that depends on a signature whose key
// cannot be looked up now.
func (s *Source) noKey() source.Observation {
	return source.Observation{Code: source.CodeThirdParty, Message: s.name + ": the key of the sender's signature cannot be looked up now"}
}

// unsubscribeURL returns the only https address in List-Unsubscribe, or why there
// is none that RFC 8058 permits to post to.
func unsubscribeURL(m *message.Message) (_ *url.URL, why string) {
	fields := func(name string) (values []string) {
		for _, f := range m.Fields {
			if strings.EqualFold(f.Name, name) {
				values = append(values, strings.TrimSpace(f.Value))
			}
		}
		return values
	}
	list, post := fields("List-Unsubscribe"), fields("List-Unsubscribe-Post")
	switch {
	case len(list) == 0:
		return nil, "the message has no List-Unsubscribe"
	case len(post) == 0:
		return nil, "the message has no List-Unsubscribe-Post, so its list does not take requests of RFC 8058"
	case len(list) > 1 || len(post) > 1:
		return nil, "the message has List-Unsubscribe or List-Unsubscribe-Post more than once"
	case post[0] != oneClick:
		return nil, "the List-Unsubscribe-Post of the message is not " + oneClick
	}
	var found []string
	for rest := list[0]; ; {
		_, after, opened := strings.Cut(rest, "<")
		at, behind, closed := strings.Cut(after, ">")
		if !opened || !closed {
			break
		}
		if len(at) >= 8 && strings.EqualFold(at[:8], "https://") {
			found = append(found, at)
		}
		rest = behind
	}
	if len(found) != 1 {
		return nil, "List-Unsubscribe does not have exactly one https address"
	}
	to, err := url.Parse(found[0])
	if err != nil || len(found[0]) > maxUnsubscribeURL || strings.ContainsFunc(found[0], func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return nil, "the https address in List-Unsubscribe is not valid"
	}
	_, literal := netip.ParseAddr(to.Hostname())
	switch {
	case to.User != nil || to.Fragment != "":
		return nil, "the https address in List-Unsubscribe has a user or a fragment"
	case to.Port() != "" && to.Port() != "443":
		return nil, "the https address in List-Unsubscribe has another port than 443"
	case literal == nil || !strings.Contains(strings.Trim(to.Hostname(), "."), "."):
		return nil, "the https address in List-Unsubscribe does not name a host by its full domain"
	}
	return to, ""
}

// postUnsubscribe sends the request. Only an answer of 2xx counts. All others
// leave open whether the sender took the request, which is not repeated. The
// sender's server is not the source's, so its failures do not open the circuit
// breaker.
func (s *Source) postUnsubscribe(ctx context.Context, to *url.URL) source.Observation {
	ctx, cancel := context.WithTimeout(ctx, unsubscribeTime)
	defer cancel()
	reply := s.web.Send(ctx, rest.Request{
		Method: http.MethodPost, URL: to.String(), Body: []byte(oneClick), Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}},
	})
	_, certificate := errors.AsType[*tls.CertificateVerificationError](reply.Err)
	switch {
	case reply.Succeeded():
		return source.Observation{Written: true, Answered: true, Result: fmt.Appendf(nil, `{"status":%d}`, reply.Status)}
	case errors.Is(reply.Err, safehttp.ErrForbidden):
		return s.refuse(source.CodeRejected, "the https address in List-Unsubscribe leads to an address that is not public")
	case certificate:
		return s.refuse(source.CodeRejected, "the server of the https address in List-Unsubscribe does not prove its name")
	case reply.Written:
		return source.Observation{Written: true, Code: source.CodeThirdParty, Message: s.name + ": the server of the list did not confirm the request"}
	}
	return source.Observation{Code: source.CodeThirdParty, Message: s.name + ": the server of the list cannot be reached"}
}
