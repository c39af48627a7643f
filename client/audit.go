package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/internal/audit"
)

// maxEntry bounds a line of an export, in bytes: an event may tell of a
// thousand actions.
const maxEntry = 16 << 20

// VerifyAudit compares a part of the events with their seals, from behind a
// seal on; 0 is the beginning. A head that was noted, unless it is the zero
// Hash, must still be in the chain. The report says where to go on.
func (c *Client) VerifyAudit(ctx context.Context, after int64, head audit.Hash) (audit.Report, error) {
	query := url.Values{}
	if after > 0 {
		query.Set("after_seal", strconv.FormatInt(after, 10))
	}
	if head != (audit.Hash{}) {
		query.Set("head", head.String())
	}
	var report audit.Report
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/audit/verify", query: query}, &report)
	return report, err
}

// ExportAudit calls line for the events of a range of time behind a place, ""
// being the beginning, one line of JSON each. There may be more than it gets:
// the closing says where to go on. An error of line ends it.
func (c *Client) ExportAudit(ctx context.Context, span audit.Span, after string, line func([]byte) error) (audit.Closing, error) {
	query := given("cursor", after)
	for name, at := range map[string]time.Time{"since": span.From, "until": span.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(c.cfg.Silence, func() { cancel(fmt.Errorf("nothing came for %s", c.cfg.Silence)) })
	defer silent.Stop()
	answer, err := c.send(ctx, request{method: http.MethodGet, path: "/api/v1/audit/events", query: query})
	if err != nil {
		return audit.Closing{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxEntry)
	for lines.Scan() {
		silent.Reset(c.cfg.Silence)
		if bytes.HasPrefix(lines.Bytes(), []byte(`{"end":`)) {
			var closing audit.Closing
			if err := json.Unmarshal(lines.Bytes(), &closing); err != nil {
				return closing, errors.New("the export's last line is not what this version expects")
			}
			return closing, nil
		}
		if err := line(lines.Bytes()); err != nil {
			return audit.Closing{}, err
		}
	}
	err = lines.Err()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == nil {
		err = errors.New("the export was cut off before its last line")
	}
	return audit.Closing{}, &UnreachableError{URL: c.String(), Cause: err}
}
