package web

// Base is where people reach the API and its page (COUNTERSIGN_PUBLIC_URL): an
// address without a path, such as https://countersign.acme.com; "" if nobody said.
// Addresses below the empty Base are empty.
type Base string

// Known reports whether there is an address.
func (b Base) Known() bool { return b != "" }

func (b Base) at(path string) string {
	if b == "" {
		return ""
	}
	return string(b) + path
}

// Actions is the address of the page that shows an action, without the action's id.
func (b Base) Actions() string { return b.at("/actions/") }

// LoginCode is the page that logs a browser in with a login code. The code is in
// the fragment, which browsers send to no server.
func (b Base) LoginCode(code string) string { return b.at("/login#code=" + code) }

// LoginCallback is where issuers send a browser back to.
func (b Base) LoginCallback() string { return b.at("/auth/callback") }

// SourceCallback is where browsers come back from logins of sources.
func (b Base) SourceCallback() string { return b.at("/auth/source") }

// SourceClient is Countersign's metadata as a client of sources' authorization
// servers.
func (b Base) SourceClient() string { return b.at("/auth/source-client") }
