package signal

// authentication notes what is known of who sent the message. What failed for a
// message of a list that the owner knows weighs a third: lists change messages
// and send them from their own hosts.
func (f *finder) authentication() {
	a := f.about.Authentication
	part := 1.0
	if f.knownList() {
		part = 1.0 / 3
	}
	if a.DMARC == AuthFail {
		switch a.Policy {
		case "reject":
			f.addScaled(DMARCFailReject, part, f.domain)
		case "quarantine":
			f.addScaled(DMARCFailQuarantine, part, f.domain)
		default:
			f.addScaled(DMARCFailNone, part, f.domain)
		}
	}
	if a.SPF == AuthFail {
		f.addScaled(SPFFail, part, f.domain)
	}
	if a.DKIM == AuthFail {
		f.addScaled(DKIMFail, part, f.domain)
	}
	if a.DMARC == AuthPass && a.Aligned {
		f.add(AuthenticationPass, f.domain)
	}
	if a.ARC == AuthPass {
		f.add(ARCPass, f.domain)
	}
}

// knownList reports whether the message came by a list that the owner has had
// mail of.
func (f *finder) knownList() bool { return f.fields.listID != "" && f.about.List.Known() }

// aligned reports whether a domain that passed is that of From.
func (f *finder) aligned() bool { return f.about.Authentication.Proven() }

// knownBulk reports whether the message is bulk mail that the owner has had
// before, or whose sender is who it claims to be. Anybody can write List-Id.
func (f *finder) knownBulk() bool {
	return f.sum(Bulk) >= 2 && (f.knownList() || f.known() || f.aligned())
}
