package rest

import (
	"context"
	"encoding/json"

	"github.com/countersign-dev/countersign/internal/insight/execution"
)

// Origin is the request that a context is of, as an action keeps it; nil
// without a request. Faces that are mounted ask for it as the API does. What a
// page of this server sends says so in a header that browsers set themselves.
func Origin(ctx context.Context, via execution.Via) json.RawMessage {
	n := noteOf(ctx)
	if n.request == nil {
		return nil
	}
	if via == execution.ViaAPI && n.request.Header.Get("Sec-Fetch-Site") == "same-origin" {
		via = execution.ViaUI
	}
	return execution.OriginOf(n.request, via, n.id, n.trusted).JSON()
}

// MCPOrigin is Origin of a request over MCP.
func MCPOrigin(ctx context.Context) json.RawMessage { return Origin(ctx, execution.ViaMCP) }
