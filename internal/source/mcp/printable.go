package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/countersign-dev/countersign/internal/source"
)

// printable reduces an error from the SDK to what may be logged: addresses,
// statuses and codes, but neither the source's URL, which may hold a secret,
// nor any text from the other side, which may hold anything.
func printable(err error) error {
	for _, known := range []error{source.ErrClosed, errTooMany, errMalformed, errOversized} {
		if errors.Is(err, known) {
			return known
		}
	}
	if refused, ok := errors.AsType[*connectError](err); ok {
		return refused.cause // printable already
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path
	}
	if command, ok := errors.AsType[*exec.Error](err); ok {
		return command
	}
	for _, known := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, known) {
			return known
		}
	}
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return fmt.Errorf("json-rpc error %d", answer.Code)
	}
	return errors.New("session failed")
}
