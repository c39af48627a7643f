package authenticate

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"blitiri.com.ar/go/spf"
	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-msgauth/dmarc"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// own is this package's own check of one message.
type own struct {
	m      *message.Message
	config Config
	from   string
	dns    *bounded

	signers []string // domains whose signature is valid
	mailer  string   // domain that SPF passed for
	// open reports whether a signature of From's organisation could not be
	// checked.
	open bool
}

func (o *own) check(ctx context.Context, raw []byte) Result {
	r := Result{ARC: Unknown, Source: FromOwn}
	r.DKIM = o.dkim(ctx, raw, &r)
	r.SPF = o.spf(ctx)
	strict := o.dmarc(ctx, &r)
	list := listDomain(o.m)
	for _, domain := range o.signers {
		r.Aligned = r.Aligned || aligned(domain, o.from, strict.dkim)
		r.ListAligned = r.ListAligned || aligned(domain, list, false)
	}
	r.Aligned = r.Aligned || aligned(o.mailer, o.from, strict.spf)
	r.ListAligned = r.ListAligned || aligned(o.mailer, list, false)
	switch {
	case r.Policy == "" || o.from == "":
		r.DMARC = Unknown
	case r.Aligned:
		r.DMARC = Pass
	case o.open || r.SPF == Unknown:
		// Either could have passed.
		r.DMARC = Unknown
	default:
		r.DMARC = Fail
	}
	return r
}

// dkim checks the signatures. A missing key is no failure: domains rotate keys,
// and mail is kept for longer.
func (o *own) dkim(ctx context.Context, raw []byte, r *Result) Status {
	keys := keyring{resolver: o.dns, missing: make(map[string]bool)}
	found, err := dkim.VerifyWithOptions(bytes.NewReader(raw), &dkim.VerifyOptions{
		LookupTXT:        func(name string) ([]string, error) { return keys.lookup(ctx, name) },
		MaxVerifications: maxSignatures,
	})
	if err != nil && !errors.Is(err, dkim.ErrTooManySignatures) {
		return Unknown
	}
	status, fromFailed := Unknown, false
	for _, v := range found {
		switch {
		case v.Err == nil:
			status = Pass
			o.signers = append(o.signers, v.Domain)
			r.UnsubscribeSigned = r.UnsubscribeSigned || unsubscribeSigned(o.m, v.HeaderKeys)
		case dkim.IsTempFail(v.Err), keys.lost(v.Domain), !v.Expiration.IsZero() && !o.config.Now.Before(v.Expiration):
			o.open = o.open || aligned(v.Domain, o.from, false)
		default:
			fromFailed = fromFailed || aligned(v.Domain, o.from, false)
			if status == Unknown {
				status = Fail
			}
		}
	}
	if fromFailed && !o.signedByFrom() {
		return Fail
	}
	return status
}

func (o *own) signedByFrom() bool {
	return slices.ContainsFunc(o.signers, func(domain string) bool { return aligned(domain, o.from, false) })
}

// keyring looks up keys and remembers the domains whose lookup failed.
type keyring struct {
	resolver Resolver
	mu       sync.Mutex
	missing  map[string]bool
}

func (k *keyring) lookup(ctx context.Context, name string) ([]string, error) {
	records, err := k.resolver.LookupTXT(ctx, name)
	if err != nil || len(records) == 0 || revoked(records[0]) {
		_, domain, _ := strings.Cut(name, "._domainkey.")
		k.mu.Lock()
		k.missing[strings.ToLower(domain)] = true
		k.mu.Unlock()
	}
	return records, err
}

func (k *keyring) lost(domain string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.missing[strings.ToLower(domain)]
}

// revoked reports whether the key record has an empty key.
func revoked(record string) bool {
	for tag := range strings.SplitSeq(record, ";") {
		if name, value, ok := strings.Cut(tag, "="); ok && strings.TrimSpace(name) == "p" {
			return strings.TrimSpace(value) == ""
		}
	}
	return false
}

// spf checks the host that handed the message over to one of the owner's border
// hosts, by that host's Received: the topmost one with its name.
func (o *own) spf(ctx context.Context) Status {
	sender := ""
	for _, f := range o.m.Fields {
		switch {
		case strings.EqualFold(f.Name, "Return-Path") && sender == "":
			sender = strings.ToLower(strings.Trim(strings.TrimSpace(f.Value), "<>"))
		case strings.EqualFold(f.Name, "Received"):
			at := parseReceived(f.Value)
			if !o.config.border(at.by) {
				if o.config.foreign(at.by) {
					return Unknown
				}
				continue
			}
			if at.ip == nil || at.ip.IsLoopback() || at.ip.IsPrivate() {
				continue
			}
			return o.spfOf(ctx, at, sender)
		}
	}
	return Unknown
}

func (o *own) spfOf(ctx context.Context, at received, sender string) Status {
	result, _ := spf.CheckHostWithSender(at.ip, at.helo, sender, spf.WithResolver(o.dns), spf.WithContext(ctx))
	switch result {
	case spf.Pass:
		o.mailer = mailDomain(sender)
		if sender == "" {
			o.mailer = at.helo
		}
		return Pass
	case spf.Fail:
		return Fail
	case spf.None, spf.Neutral, spf.SoftFail, spf.TempError, spf.PermError:
		return Unknown
	}
	return Unknown
}

// strictness holds the alignment modes that From's domain requests.
type strictness struct{ dkim, spf bool }

// dmarc looks up the DMARC policy of From's domain or of its organisation.
func (o *own) dmarc(ctx context.Context, r *Result) strictness {
	if o.from == "" {
		return strictness{}
	}
	options := &dmarc.LookupOptions{LookupTXT: func(name string) ([]string, error) { return o.dns.LookupTXT(ctx, name) }}
	record, err := dmarc.LookupWithOptions(o.from, options)
	policy := func() dmarc.Policy { return record.Policy }
	if errors.Is(err, dmarc.ErrNoPolicy) && organisation(o.from) != o.from {
		record, err = dmarc.LookupWithOptions(organisation(o.from), options)
		policy = func() dmarc.Policy {
			if record.SubdomainPolicy != "" {
				return record.SubdomainPolicy
			}
			return record.Policy
		}
	}
	if err != nil || record == nil {
		return strictness{}
	}
	r.Policy = string(policy())
	return strictness{record.DKIMAlignment == dmarc.AlignmentStrict, record.SPFAlignment == dmarc.AlignmentStrict}
}
