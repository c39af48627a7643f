package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/countersign-dev/countersign/internal/source"
)

// eventFilter passes on server-sent events one at a time, if they are complete,
// within limits and valid JSON-RPC. At the first invalid event it reports a code
// and ends the stream. The SDK then sees a cut stream, which concerns one call,
// instead of a bad message, which would concern all.
type eventFilter struct {
	body     io.Closer
	in       *bufio.Reader
	setFault func(code string)

	event bytes.Buffer // the event being read, then being handed out
	data  bytes.Buffer // the event's data fields
	name  []byte
	ready bool // event is whole and may be handed out
	err   error
}

// newEventFilter filters body, of which it reads at most limit bytes in total.
func newEventFilter(body io.ReadCloser, limit int, setFault func(code string)) *eventFilter {
	return &eventFilter{
		body:     body,
		in:       bufio.NewReader(&boundedBody{ReadCloser: body, left: limit}),
		setFault: setFault,
	}
}

// Read implements io.Reader.
func (f *eventFilter) Read(p []byte) (int, error) {
	for !f.ready {
		if f.err != nil {
			return 0, f.err
		}
		f.line()
	}
	n, _ := f.event.Read(p) // an empty buffer is the only error
	if f.event.Len() == 0 {
		f.event.Reset()
		f.ready = false
	}
	return n, nil
}

// line reads one line. An empty line ends the event.
func (f *eventFilter) line() {
	line, err := f.in.ReadBytes('\n')
	f.event.Write(line)
	line = bytes.TrimRight(line, "\r\n")
	name, value, found := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if f.data.Len() > 0 {
			f.data.WriteByte('\n')
		}
		f.data.Write(value)
	case "event":
		f.name = bytes.Clone(value)
	}
	switch {
	case errors.Is(err, errOversized):
		f.fail(source.CodeOversized, err)
	case err != nil && !errors.Is(err, io.EOF):
		f.err = err // the stream was cut within an event
	case len(line) > 0 && !found:
		f.fail(source.CodeMalformed, errMalformed)
	case len(line) == 0 || err != nil:
		f.finish()
		if f.err == nil {
			f.err = err // the end, if it is one
		}
	}
}

func (f *eventFilter) finish() {
	message := len(f.name) == 0 || string(f.name) == "message"
	if message && f.data.Len() > 0 {
		if _, err := jsonrpc.DecodeMessage(f.data.Bytes()); err != nil {
			f.fail(source.CodeMalformed, errMalformed)
			return
		}
	}
	f.data.Reset()
	f.name = nil
	f.ready = f.event.Len() > 0
}

func (f *eventFilter) fail(code string, err error) {
	f.setFault(code)
	f.event.Reset()
	f.err = err
}

// Close implements io.Closer.
func (f *eventFilter) Close() error { return f.body.Close() }
