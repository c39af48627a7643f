// Package authenticate finds out who sent a mail: from the
// Authentication-Results of a host that the owner trusts, and where there are
// none, by its own DKIM, SPF and DMARC checks. It asks DNS through a resolver
// that is passed in, and reads nothing else.
//
// An answer is pass, fail or unknown. What could not be asked, and what a mail
// does not carry, is unknown: absent is not failed.
package authenticate

// Status is the result of one check.
type Status string

// The results. Absent and unknown are not failures.
const (
	Pass    Status = "pass"
	Fail    Status = "fail"
	Unknown Status = "unknown"
)

// Source says where a result comes from.
type Source string

// The sources.
const (
	// FromHeader is the Authentication-Results of the trusted host.
	FromHeader Source = "header"
	// FromOwn is this package's own check.
	FromOwn Source = "own"
	// FromNone says that nothing is known.
	FromNone Source = "none"
)

// Result is what is known of who sent a message. The zero value says that
// nothing was asked.
type Result struct {
	SPF, DKIM, DMARC Status
	// ARC is what the trusted host says about the chain of intermediaries; this
	// package does not check chains.
	ARC Status
	// Policy is the DMARC policy of From's domain: none, quarantine, reject, or
	// empty.
	Policy string
	// Aligned says that a domain which passed is that of From.
	Aligned bool
	// ListAligned says that a domain which passed is that of List-Id: anybody can
	// write the name of a list.
	ListAligned bool
	// UnsubscribeSigned says that a valid DKIM signature covers List-Unsubscribe
	// and List-Unsubscribe-Post.
	UnsubscribeSigned bool
	Source            Source
}

// Proven reports whether a domain that passed is that of From, and DMARC did not
// fail.
func (r Result) Proven() bool { return r.Aligned && r.DMARC != Fail }

// Asked reports whether anything could be found out about who sent the message.
// Without that, its header is all that is known.
func (r Result) Asked() bool {
	known := func(s Status) bool { return s == Pass || s == Fail }
	return r.Source == FromHeader || r.Source == FromOwn || r.Aligned || r.ListAligned || known(r.SPF) || known(r.DKIM) || known(r.DMARC)
}
