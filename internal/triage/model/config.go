package model

import (
	"net"
	"net/netip"
)

// Tiers returns the names of the tiers that a configuration may give a model, in
// the order in which they are asked.
func Tiers() []string { return []string{"t1", "t2a", "t2b", "t3"} }

// Config is which models are asked, and where.
type Config struct {
	// Servers are by the names that tiers use.
	Servers map[string]ServerConfig
	// Tiers are by the names of Tiers. A tier that is missing asks no model.
	Tiers map[string]TierConfig
	// Calibrations is a file that says how far answers are to be believed, for who
	// asks. Empty if there is none.
	Calibrations string
}

// ServerConfig is where a model server is.
type ServerConfig struct {
	// Dialect is Auto if it is empty.
	Dialect Dialect
	// URL is http:// or https:// with an address that has to be on the loopback
	// interface or in Networks after resolution, or unix:// and an absolute path.
	URL      string
	Networks []netip.Prefix
	// Slots is how many questions the server answers at once; 0 is what it says
	// itself, or 1.
	Slots int
	// Resolver looks the name in URL up; nil is the resolver of the machine.
	Resolver *net.Resolver
}

// TierConfig is the model of a tier.
type TierConfig struct {
	// Server is a name in Config.Servers.
	Server string
	Model  string
	// Context is the size of the context, in tokens; 0 is what the server says, or
	// 4096.
	Context int
	// Pack is how many messages may go into one question; 0 is 8.
	Pack int
}
