package request

import (
	"log/slog"
	"net/http"
	"time"
)

// WritePiece writes and flushes a piece of a long answer, with a deadline of
// its own, so that a client that does not read is disconnected.
func (c *Call) WritePiece(piece []byte) error {
	control := http.NewResponseController(c.W)
	if err := control.SetWriteDeadline(time.Now().Add(WriteTimeout)); err != nil {
		return err
	}
	if _, err := c.W.Write(piece); err != nil {
		return err
	}
	return control.Flush()
}

// EndExport ends an export whose answer has begun. The client sees from the
// missing end of an export that it was cut short; the error goes to the log.
func (c *Call) EndExport(err error) error {
	if err != nil && c.R.Context().Err() == nil {
		c.Log.ErrorContext(c.R.Context(), "export cut", slog.String("request_id", ID(c.R.Context())), slog.Any("error", err))
	}
	return nil
}
