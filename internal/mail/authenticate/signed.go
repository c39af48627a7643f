package authenticate

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// maxSignedFields bounds the header fields of a message whose signature counts:
// more may hide a second field of a name.
const maxSignedFields = 500

// ErrLookup is the error of a check whose DNS lookups failed for now.
var ErrLookup = errors.New("the key of a signature could not be looked up")

// UnsubscribeSigned checks the signatures of a message once more, and reports
// whether a valid one of From's domain or organisation covers From,
// List-Unsubscribe and List-Unsubscribe-Post, of which there is one each. Unlike
// Check it believes no header. The error is ErrLookup if only a lookup prevents a
// result.
func UnsubscribeSigned(ctx context.Context, raw []byte, m *message.Message, config Config) (bool, error) {
	return signed(ctx, raw, m, config, func(v *dkim.Verification) bool { return unsubscribeSigned(m, v.HeaderKeys) })
}

// SenderSigned reports whether a valid signature of From's domain or organisation
// covers a message. Unlike Check it believes no header. The error is ErrLookup if
// only a lookup prevents a result.
func SenderSigned(ctx context.Context, raw []byte, m *message.Message, config Config) (bool, error) {
	return signed(ctx, raw, m, config, func(*dkim.Verification) bool { return true })
}

// signed reports whether a valid signature of From's domain or organisation also
// meets a condition.
func signed(ctx context.Context, raw []byte, m *message.Message, config Config, meets func(*dkim.Verification) bool) (bool, error) {
	from := fromDomain(m)
	if from == "" || len(m.Fields) > maxSignedFields || config.Resolver == nil {
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
		return aligned(v.Domain, from, false) && meets(v)
	}
	if slices.ContainsFunc(found, func(v *dkim.Verification) bool { return v.Err == nil && covers(v) }) {
		return true, nil
	}
	if slices.ContainsFunc(found, func(v *dkim.Verification) bool { return dkim.IsTempFail(v.Err) && covers(v) }) {
		return false, ErrLookup
	}
	return false, nil
}
