package request

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"

	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/listen"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

type metaKey struct{}

// Meta is the data of a request's log line, and the request itself.
type Meta struct {
	// ID is the id of the request in logs and problems.
	ID string
	// By is the caller, once it is authenticated.
	By identity.Principal
	// Request and TrustedProxies are for Origin.
	Request        *http.Request
	TrustedProxies []netip.Prefix
}

// WithMeta returns a context that carries m.
func WithMeta(ctx context.Context, m *Meta) context.Context {
	return context.WithValue(ctx, metaKey{}, m)
}

func metaOf(ctx context.Context) *Meta {
	if m, ok := ctx.Value(metaKey{}).(*Meta); ok {
		return m
	}
	return &Meta{}
}

// ID returns the id of the request of a context.
func ID(ctx context.Context) string { return metaOf(ctx).ID }

// SetCaller stores the caller of a context's request for its log line, and counts
// the connection as one of the caller. The error is fault.Busy if the caller or
// its tenant has too many.
func SetCaller(ctx context.Context, by identity.Principal) error {
	metaOf(ctx).By = by
	return listen.SetCaller(ctx, by.Token.String(), by.Tenant.String())
}

// Origin returns the origin of the request of a context, as an action stores
// it; nil without a request. Browsers mark the requests of a page of this
// server in a header that scripts cannot set.
func Origin(ctx context.Context, via execution.Via) json.RawMessage {
	m := metaOf(ctx)
	if m.Request == nil {
		return nil
	}
	if via == execution.ViaAPI && m.Request.Header.Get("Sec-Fetch-Site") == "same-origin" {
		via = execution.ViaUI
	}
	text, err := json.Marshal(execution.OriginOf(m.Request, via, m.ID, m.TrustedProxies))
	if err != nil { // it contains only strings
		return nil
	}
	return text
}

// Visitor returns where the browser of a request is.
func (c *Call) Visitor() identity.Visitor {
	of := execution.OriginOf(c.R, execution.ViaUI, "", metaOf(c.R.Context()).TrustedProxies)
	return identity.Visitor{Address: of.IP, Program: of.UserAgent}
}
