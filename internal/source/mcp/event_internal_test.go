package mcp

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

const ok = `{"jsonrpc":"2.0","id":1,"result":{}}`

func TestEventFilter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in, out string
		code    string
		err     error
	}{
		"a whole event":          {in: "data: " + ok + "\n\n", out: "data: " + ok + "\n\n"},
		"several lines of data":  {in: "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n", out: "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n"},
		"carriage returns":       {in: "data: " + ok + "\r\n\r\n", out: "data: " + ok + "\r\n\r\n"},
		"no data":                {in: "id: 1\ndata: \n\n", out: "id: 1\ndata: \n\n"},
		"a comment":              {in: ": hello\n\n", out: ": hello\n\n"},
		"another kind of event":  {in: "event: ping\ndata: pong\n\n", out: "event: ping\ndata: pong\n\n"},
		"an end without a blank": {in: "data: " + ok, out: "data: " + ok},
		"nothing":                {},
		"good before bad":        {in: "data: " + ok + "\n\ndata: bad\n\n", out: "data: " + ok + "\n\n", code: "malformed", err: errMalformed},
		"no field":               {in: "hello\n\n", code: "malformed", err: errMalformed},
		"too much":               {in: "data: " + strings.Repeat("x", 2000), code: "oversized", err: errOversized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code := ""
			f := newEventFilter(io.NopCloser(iotest.OneByteReader(strings.NewReader(test.in))), 1000, func(c string) { code = c })

			out, err := io.ReadAll(f)

			if string(out) != test.out || code != test.code || !errors.Is(err, test.err) {
				t.Errorf("filter(%q) = %q, %q, %v, want %q, %q, %v", test.in, out, code, err, test.out, test.code, test.err)
			}
		})
	}
}

func TestEventFilterPassesOnACutStream(t *testing.T) {
	t.Parallel()
	in := io.MultiReader(strings.NewReader("data: "+ok+"\n\ndata: {\"json"), iotest.ErrReader(io.ErrUnexpectedEOF))
	f := newEventFilter(io.NopCloser(in), 1000, func(c string) { t.Errorf("spoilt by %q", c) })

	out, err := io.ReadAll(f)

	if string(out) != "data: "+ok+"\n\n" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("filter() = %q, %v, want the first event and the cut", out, err)
	}
}

func FuzzEventFilter(f *testing.F) {
	f.Add("data: " + ok + "\n\n")
	f.Add("event: x\ndata: y\n\nid: 1\n\n: c\n\n")
	f.Add("data\n\n\r\n:\ndata:")
	f.Fuzz(func(t *testing.T, in string) {
		spoilt := false
		filter := newEventFilter(io.NopCloser(strings.NewReader(in)), 1000, func(string) { spoilt = true })

		out, err := io.ReadAll(filter)

		if !strings.HasPrefix(in, string(out)) {
			t.Errorf("filter(%q) = %q, want a prefix", in, out)
		}
		if (err != nil) != spoilt {
			t.Errorf("filter(%q) = %v and spoilt = %t", in, err, spoilt)
		}
		if err == nil && string(out) != in {
			t.Errorf("filter(%q) = %q, want all of it", in, out)
		}
	})
}
