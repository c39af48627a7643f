package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/countersign-dev/countersign/client/wire"
)

// Recovery reads the state of the database, and the effects of its recovery. head is a
// head of the audit log that was noted elsewhere; nil for none.
func (c *Client) Recovery(ctx context.Context, head *wire.AuditHead) (wire.Recovery, error) {
	q := url.Values{}
	if head != nil {
		q.Set("checkpoint_no", strconv.FormatInt(head.Checkpoint, 10))
		q.Set("head", head.Hash)
	}
	return read[wire.Recovery](ctx, c, "/api/v1/recovery", q)
}

// Recover recovers a database that is held. etag is that of the Recovery whose effects
// the caller has seen. The state is held, if another person has to ask for it too.
func (c *Client) Recover(ctx context.Context, etag string, in wire.RecoveryInput) (wire.Recovery, error) {
	var out wire.Recovery
	_, err := c.do(ctx, request{method: http.MethodPost, path: "/api/v1/recovery", header: ifMatch(etag), in: in}, &out)
	return out, err
}
