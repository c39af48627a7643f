package oauth

import (
	"net/http"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"

	"github.com/countersign-dev/countersign/internal/insight/execution"
)

const (
	// perSecond and burst bound the requests of one address: a client that logs in
	// makes four, and renews once an hour.
	perSecond, burst = 5, 60
	// maxAddresses bounds the addresses that are remembered.
	maxAddresses = 10_000
)

// limits bounds the requests of each address. It is safe for concurrent use.
type limits struct {
	mu    sync.Mutex
	known map[netip.Prefix]*rate.Limiter
}

func newLimits() *limits { return &limits{known: make(map[netip.Prefix]*rate.Limiter)} }

// allow reports whether an address may make another request. IPv6 addresses count
// by their /64 network.
func (l *limits) allow(address string) bool {
	at, _ := netip.ParseAddr(address) // addresses that cannot be read count as one
	bits := at.BitLen()
	if at.Is6() && !at.Is4In6() {
		bits = 64
	}
	of, _ := at.Unmap().Prefix(min(bits, at.Unmap().BitLen()))
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.known[of]
	if one == nil {
		if len(l.known) >= maxAddresses {
			clear(l.known)
		}
		one = rate.NewLimiter(perSecond, burst)
		l.known[of] = one
	}
	return one.Allow()
}

// limited wraps a handler that anybody may call.
func (s *Server) limited(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.limits.allow(execution.OriginOf(r, execution.ViaAPI, "", s.cfg.TrustedProxies).IP) {
			w.Header().Set("Retry-After", "5")
			writeJSON(w, http.StatusTooManyRequests, refusal{"temporarily_unavailable", "too many requests from this address; try again in some seconds"})
			return
		}
		next(w, r)
	}
}
