package authenticate

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// maxUnsubscribeFields bounds the header fields of a message whose fields for
// unsubscribing count: more may hide a second field of a name.
const maxUnsubscribeFields = 500

// ErrLookup is the error of a check whose DNS lookups failed for now.
var ErrLookup = errors.New("the key of a signature could not be looked up")

// UnsubscribeSigned checks the signatures of a message once more, and reports
// whether a valid one of From's domain or organisation covers From,
// List-Unsubscribe and List-Unsubscribe-Post, of which there is one each. Unlike
// Check it believes no header. The error is ErrLookup if only a lookup prevents a
// result.
func UnsubscribeSigned(ctx context.Context, raw []byte, m *message.Message, config Config) (bool, error) {
	from := fromDomain(m)
	if from == "" || len(m.Fields) > maxUnsubscribeFields || config.Resolver == nil {
		return false, nil
	}
	timeout := config.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dns := &bounded{resolver: config.Resolver, remaining: maxLookups}
	found, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{
		LookupTXT:        func(name string) ([]string, error) { return dns.LookupTXT(ctx, name) },
		MaxVerifications: maxSignatures,
	})
	if err != nil && !errors.Is(err, dkim.ErrTooManySignatures) {
		return false, nil // a message without signatures
	}
	covers := func(v *dkim.Verification) bool {
		return aligned(v.Domain, from, false) && unsubscribeSigned(m, v.HeaderKeys)
	}
	if slices.ContainsFunc(found, func(v *dkim.Verification) bool { return v.Err == nil && covers(v) }) {
		return true, nil
	}
	if slices.ContainsFunc(found, func(v *dkim.Verification) bool { return dkim.IsTempFail(v.Err) && covers(v) }) {
		return false, ErrLookup
	}
	return false, nil
}
