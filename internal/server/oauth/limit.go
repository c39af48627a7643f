package oauth

import (
	"net/http"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"

	"github.com/countersign-dev/countersign/internal/listen"
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

// allow reports whether a network may make another request.
func (l *limits) allow(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.known[from]
	if one == nil {
		if len(l.known) >= maxAddresses {
			clear(l.known)
		}
		one = rate.NewLimiter(perSecond, burst)
		l.known[from] = one
	}
	return one.Allow()
}

// limited wraps a handler that anybody may call.
func (s *Server) limited(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.limits.allow(listen.Network(listen.ClientOf(r, s.cfg.TrustedProxies))) {
			w.Header().Set("Retry-After", "5")
			writeJSON(w, http.StatusTooManyRequests, refusal{"temporarily_unavailable", "too many requests from this address; try again in some seconds"})
			return
		}
		next(w, r)
	}
}
