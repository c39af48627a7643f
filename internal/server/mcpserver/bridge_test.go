package mcpserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// bridged is the SDK's client on the near side of a bridge. stop closes the
// client's side, and returns the bridge's error.
func (h *fixture) bridged(who identity.Issued, version string) (c *client, stop func() error) {
	h.t.Helper()
	fromClient, toBridge := io.Pipe()
	fromBridge, toClient := io.Pipe()
	ended := make(chan error, 1)
	go func() { // waited for by stop
		err := mcpserver.Bridge(h.t.Context(), mcpserver.BridgeConfig{URL: h.url, Token: who.Token.Text(), In: fromClient, Out: toClient})
		_ = toClient.Close()
		ended <- err
	}()
	c = &client{t: h.t, progress: make(chan *sdk.ProgressNotificationParams, 1000), changed: make(chan struct{}, 1000)}
	inner := sdk.NewClient(&sdk.Implementation{Name: "near", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { c.progress <- r.Params },
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { c.changed <- struct{}{} },
	})
	var err error
	c.ClientSession, err = inner.Connect(h.t.Context(), &sdk.IOTransport{Reader: fromBridge, Writer: toBridge}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		h.t.Fatal(err)
	}
	return c, func() error {
		_ = toBridge.Close()
		select {
		case err := <-ended:
			return err
		case <-time.After(waitLimit):
			return errors.New("the bridge does not end")
		}
	}
}

func TestBridge(t *testing.T) {
	t.Parallel()
	everyVersion(t, func(t *testing.T, version string) {
		f := newFixture(t, mcpserver.Config{Progress: 20 * time.Millisecond, Poll: 20 * time.Millisecond}).tenant("acme")
		f.src.Next("box.write", sourcetest.Done(`{"content":[{"type":"text","text":"written"}],"structured":{"n":12345678901234567890}}`))
		c, stop := f.bridged(f.agent, version)

		names := c.names()
		call := c.start(t.Context(), nameWrite, object{"to": "ada"})
		first, second := c.nextProgress(), c.nextProgress()
		f.grant(f.only())
		got := c.end(call)
		denied := c.call(nameDanger, object{})
		_, unknown := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "nothing__at.all"})
		f.allow("box:danger")

		if !slices.Contains(names, nameWrite) || !slices.Contains(names, "countersign_wait") || slices.Contains(names, "countersign_catalog") {
			t.Errorf("names = %v", names)
		}
		if got.text != "written" || got.note.Status != "sent" || second.Progress <= first.Progress {
			t.Errorf("result = %s after %+v, %+v", got.raw, first, second)
		}
		denied.wants(t, "denied", true)
		if unknown == nil || !strings.Contains(unknown.Error(), "unknown tool") {
			t.Errorf("an unknown tool gives %v", unknown)
		}
		select {
		case <-c.changed:
		case <-time.After(waitLimit):
			t.Error("the client is not notified that the list changed")
		}
		if err := stop(); err != nil {
			t.Errorf("Bridge() = %v", err)
		}
	})
}

func TestBridgeCancelsOnBothSides(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	c, stop := f.bridged(f.agent, withSessions)
	ctx, cancel := context.WithCancel(t.Context())

	call := c.start(ctx, nameWrite, object{"to": "ada"})
	c.nextProgress()
	cancel()
	<-call

	select {
	case <-f.stopped:
	case <-time.After(waitLimit):
		t.Fatal("the wait goes on")
	}
	if err := stop(); err != nil {
		t.Errorf("Bridge() = %v", err)
	}
}

func TestBridgeStartErrors(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	bridge := func(url, token string) error {
		return mcpserver.Bridge(t.Context(), mcpserver.BridgeConfig{URL: url, Token: token, In: strings.NewReader(""), Out: io.Discard})
	}

	refused := bridge(f.url, "cs_agent_"+marker)
	nowhere := bridge("http://127.0.0.1:9/mcp", f.agent.Token.Text())

	if !errors.Is(refused, mcpserver.ErrBridgeToken) || strings.Contains(refused.Error(), marker) {
		t.Errorf("with a wrong token Bridge() = %v, want ErrBridgeToken", refused)
	}
	if nowhere == nil || !strings.Contains(nowhere.Error(), "http://127.0.0.1:9/mcp") || strings.Contains(nowhere.Error(), f.agent.Token.Text()) {
		t.Errorf("without a server Bridge() = %v, want its address", nowhere)
	}
}

func TestBridgeDoesNotWaitForASilentServer(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()

	err = mcpserver.Bridge(t.Context(), mcpserver.BridgeConfig{
		URL: "http://" + silent.Addr().String() + "/mcp", Answer: 50 * time.Millisecond, In: strings.NewReader(""), Out: io.Discard,
	})

	if err == nil || t.Context().Err() != nil {
		t.Errorf("Bridge() to a silent server = %v, want an error", err)
	}
}

func TestBridgeAnswersWhenTheServerIsGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	c, stop := f.bridged(f.agent, withSessions)
	f.mcp.Close()

	_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: nameRead, Arguments: object{}})

	if err == nil || strings.Contains(err.Error(), f.agent.Token.Text()) {
		t.Errorf("a call that cannot be passed on gives %v, want an error", err)
	}
	if err := stop(); err != nil {
		t.Errorf("Bridge() = %v", err)
	}
}
