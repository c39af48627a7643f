package model

import (
	"net/netip"

	"github.com/countersign-dev/countersign/internal/safehttp"
)

// own returns the networks of which parts may be named for a server: those for
// private use, and the one that private overlay networks use.
func own() []netip.Prefix {
	return append(safehttp.Private(), netip.MustParsePrefix("100.64.0.0/10"))
}
