package signal

// authentication adds the symbols of authentication. A failure weighs a third
// for a message of a known list: lists change messages and send them from their
// own hosts.
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

// knownList reports whether the message came by a list that the owner has
// received mail from.
func (f *finder) knownList() bool { return f.fields.listID != "" && f.about.List.Known() }

// aligned reports whether a domain that passed is aligned with From.
func (f *finder) aligned() bool { return f.about.Authentication.Proven() }

// knownBulk reports whether the message is bulk mail that the owner received
// before, or from a proven sender. Anybody can write List-Id.
func (f *finder) knownBulk() bool {
	return f.sum(Bulk) >= 2 && (f.knownList() || f.known() || f.aligned())
}
