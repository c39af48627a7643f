// Package authenticate checks who sent a mail. It takes the results from the
// Authentication-Results of a host that the owner trusts; without one, it
// checks DKIM, SPF and DMARC itself. It queries DNS through a resolver that is
// passed in, and reads nothing else.
//
// A result is pass, fail or unknown. A check that could not be made, and a
// mechanism that the mail does not use, are unknown, not fail.
package authenticate

// Status is the result of one check.
type Status string

// The results. A mechanism that the mail does not use is Unknown.
const (
	Pass    Status = "pass"
	Fail    Status = "fail"
	Unknown Status = "unknown"
)

// Source is the origin of a result.
type Source string

// The sources.
const (
	// FromHeader is the Authentication-Results of the trusted host.
	FromHeader Source = "header"
	// FromOwn is the check of this package.
	FromOwn Source = "own"
	// FromNone means no result.
	FromNone Source = "none"
)

// Result holds the results of authenticating the sender of a message. The zero
// value means that nothing was checked.
type Result struct {
	SPF, DKIM, DMARC Status
	// ARC is the trusted host's result for the chain of intermediaries. This
	// package does not check chains itself.
	ARC Status
	// Policy is the DMARC policy of From's domain: none, quarantine, reject, or
	// empty.
	Policy string
	// Aligned reports whether a domain that passed is aligned with From.
	Aligned bool
	// ListAligned reports whether a domain that passed is that of List-Id,
	// which anybody can write.
	ListAligned bool
	// UnsubscribeSigned reports whether a valid DKIM signature covers
	// List-Unsubscribe and List-Unsubscribe-Post.
	UnsubscribeSigned bool
	Source            Source
}

// Proven reports whether the sender is authenticated: a domain that passed is
// aligned with From, and DMARC did not fail.
func (r Result) Proven() bool { return r.Aligned && r.DMARC != Fail }

// Asked reports whether any check had a result. Otherwise the header is the
// only information about the sender.
func (r Result) Asked() bool {
	known := func(s Status) bool { return s == Pass || s == Fail }
	return r.Source == FromHeader || r.Source == FromOwn || r.Aligned || r.ListAligned || known(r.SPF) || known(r.DKIM) || known(r.DMARC)
}
