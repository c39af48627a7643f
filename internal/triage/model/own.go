package model

import (
	"net/netip"

	"github.com/countersign-dev/countersign/internal/safehttp"
)

// own returns the networks whose parts may be allowed for a server: private-use
// networks, and the one of private overlay networks.
func own() []netip.Prefix {
	return append(safehttp.Private(), netip.MustParsePrefix("100.64.0.0/10"))
}
