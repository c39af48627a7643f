package model

import (
	"net"
	"net/netip"
)

// Tiers returns the names of the tiers that can have a model, in the order of
// asking.
func Tiers() []string { return []string{"t1", "t2a", "t2b", "t3"} }

// Config configures the models and their servers.
type Config struct {
	// Servers are keyed by the names that tiers use.
	Servers map[string]ServerConfig
	// Tiers are keyed by the names of Tiers. A missing tier has no model.
	Tiers map[string]TierConfig
	// Dictation is the model that transcribes recordings.
	Dictation DictationConfig
	// Calibrations is the path of a file of calibrations for the caller, or "".
	Calibrations string
}

// ServerConfig configures a model server.
type ServerConfig struct {
	// Dialect is the dialect; "" means Auto.
	Dialect Dialect
	// URL is http:// or https:// with an address that must be on the loopback
	// interface or in Networks after resolution, or unix:// and an absolute
	// path.
	URL      string
	Networks []netip.Prefix
	// Slots is the number of concurrent questions; 0 means the number that the
	// server reports, or 1.
	Slots int
	// Resolver resolves the name in URL; nil means the resolver of the machine.
	Resolver *net.Resolver
}

// TierConfig is the model of a tier.
type TierConfig struct {
	// Server is a name in Config.Servers.
	Server string
	Model  string
	// Context is the size of the context in tokens; 0 means the size that the
	// server reports, or 4096.
	Context int
	// Pack is the largest number of messages in one question; 0 means 8.
	Pack int
}
