package request

import (
	"log/slog"
	"net/http"
)

// WritePiece writes and flushes a piece of a long answer. The server gives each
// piece a deadline of its own.
func (c *Call) WritePiece(piece []byte) error {
	if _, err := c.W.Write(piece); err != nil {
		return err
	}
	return http.NewResponseController(c.W).Flush()
}

// EndExport ends an export after its response has begun. The client detects
// the missing end; the error is logged.
func (c *Call) EndExport(err error) error {
	if err != nil && c.R.Context().Err() == nil {
		c.Log.ErrorContext(c.R.Context(), "export cut", slog.String("request_id", ID(c.R.Context())), slog.Any("error", err))
	}
	return nil
}
