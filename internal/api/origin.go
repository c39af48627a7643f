package api

import (
	"context"
	"encoding/json"

	"github.com/countersign-dev/countersign/internal/forensic"
)

// Origin is the request that a context is of, as an action keeps it; nil
// without a request. Faces that are mounted ask for it as the API does. What a
// page of this server sends says so in a header that browsers set themselves.
func Origin(ctx context.Context, via forensic.Via) json.RawMessage {
	n := noteOf(ctx)
	if n.request == nil {
		return nil
	}
	if via == forensic.ViaAPI && n.request.Header.Get("Sec-Fetch-Site") == "same-origin" {
		via = forensic.ViaUI
	}
	return forensic.OriginOf(n.request, via, n.id, n.trusted).JSON()
}

// MCPOrigin is Origin of a request over MCP.
func MCPOrigin(ctx context.Context) json.RawMessage { return Origin(ctx, forensic.ViaMCP) }
