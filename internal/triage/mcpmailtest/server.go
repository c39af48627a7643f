// Package mcpmailtest is an MCP mail server for tests, made with the official
// Go SDK: a mailbox in memory, reading tools, writing tools, and faults.
package mcpmailtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Server is an MCP mail server with the folders INBOX, Sent and Archive. It is
// safe for concurrent use.
type Server struct {
	// URL is its address.
	URL string

	kind   Kind
	served *sdk.Server
	http   *httptest.Server

	mu       sync.Mutex
	folders  map[string]*folder
	next     int
	calls    []string
	answered func(tool string, args, answer map[string]any)
	status   func() (status int, retryAfter string)
}

// Kind selects the features of the server.
type Kind struct {
	// NoChanges omits the tool for changes, so that its client uses times.
	NoChanges bool
	// NoTimes omits the times of messages from listings.
	NoTimes bool
	// Built returns fields and text of messages instead of originals.
	Built bool
	// Secret is the bearer token that requests need, or "".
	Secret string
}

type folder struct {
	validity, seq int
	messages      []*message
	gone          []departed
}

type message struct {
	id       string
	raw      []byte
	flags    []string
	received time.Time
	// added and changed are when that happened, in the folder's own count.
	added, changed int
}

type departed struct {
	id        string
	added, at int
}

// The tools.
const (
	Folders = "list_folders"
	List    = "list_messages"
	Changes = "list_changes"
	Read    = "read_message"
	Delete  = "delete_message"
)

// New starts a server that stops when the test ends.
func New(t testing.TB, kind Kind) *Server {
	t.Helper()
	s := &Server{kind: kind, folders: map[string]*folder{}, served: sdk.NewServer(&sdk.Implementation{Name: "mail", Version: "1"}, nil)}
	for _, name := range []string{"INBOX", "Sent", "Archive"} {
		s.folders[name] = &folder{validity: 1}
	}
	for _, tool := range []string{Folders, List, Read, Changes} {
		if tool != Changes || !kind.NoChanges {
			s.Offer(tool, &sdk.ToolAnnotations{ReadOnlyHint: true})
		}
	}
	s.Offer(Delete, &sdk.ToolAnnotations{DestructiveHint: new(true)})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.served }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kind.Secret != "" && r.Header.Get("Authorization") != "Bearer "+kind.Secret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if status, after := s.refusal(); status != 0 {
			w.Header().Set("Retry-After", after)
			w.WriteHeader(status)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.http.Close)
	s.URL = s.http.URL
	return s
}

// Stop stops the server, as if its machine had failed.
func (s *Server) Stop() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Offer lists a tool with annotations; it replaces a listed one of the same
// name.
func (s *Server) Offer(name string, hints *sdk.ToolAnnotations) {
	s.served.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: hints},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return s.call(name, r.Params.Arguments)
		})
}

// Withdraw removes a tool from the list.
func (s *Server) Withdraw(name string) { s.served.RemoveTools(name) }

// Answers changes every answer before it is sent. change may set the member
// "fail" to the text of a tool's failure.
func (s *Server) Answers(change func(tool string, args, answer map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = change
}

// Refuses rejects requests with the returned status, unless it is 0.
func (s *Server) Refuses(refuse func() (status int, retryAfter string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = refuse
}

func (s *Server) refusal() (int, string) {
	s.mu.Lock()
	refuse := s.status
	s.mu.Unlock()
	if refuse == nil {
		return 0, ""
	}
	return refuse()
}

// Calls returns the names of the called tools, in order.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *Server) call(tool string, raw json.RawMessage) (*sdk.CallToolResult, error) {
	var args map[string]any
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, tool)
	answer := s.answer(tool, args)
	if s.answered != nil {
		s.answered(tool, args, answer)
	}
	if failure, ok := answer["fail"]; ok {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(failure)}}}, nil
	}
	text, err := json.Marshal(answer)
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: answer}, err
}

func (s *Server) answer(tool string, args map[string]any) map[string]any {
	if tool == Folders {
		names := []any{}
		for _, name := range slices.Sorted(maps.Keys(s.folders)) {
			names = append(names, map[string]any{"name": name, "use": string(mailbox.UseOf(name, "/"))})
		}
		return map[string]any{"folders": names}
	}
	name, _ := args["folder"].(string)
	f := s.folders[name]
	if f == nil {
		return map[string]any{"fail": "no such folder"}
	}
	switch tool {
	case List:
		return f.list(s.kind, args)
	case Changes:
		return f.changes(s.kind, args)
	case Read:
		id, _ := args["id"].(string)
		return f.read(s.kind, id)
	}
	f.messages = nil // delete_message
	return map[string]any{}
}

// Deliver stores a message that is received now.
func (s *Server) Deliver(folder string, raw []byte, flags ...string) {
	s.At(folder, raw, time.Now(), flags...)
}

// At stores a message that was received at a time.
func (s *Server) At(folder string, raw []byte, received time.Time, flags ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(folder, raw, received, flags)
}

func (s *Server) add(folder string, raw []byte, received time.Time, flags []string) {
	s.next++
	f := s.folders[folder]
	f.seq++
	f.messages = append(f.messages, &message{
		id: fmt.Sprintf("m-%06d", s.next), raw: slices.Clone(raw), flags: mailbox.Flags(flags...), received: received.UTC(), added: f.seq,
	})
}

// Flag adds a flag to the message of a folder that has a Message-ID.
func (s *Server) Flag(folder, messageID, flag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[folder]
	for _, m := range f.messages {
		if mailbox.MessageID(m.raw) == messageID {
			f.seq++
			m.flags, m.changed = mailbox.Flags(append(m.flags, flag)...), f.seq
		}
	}
}

// Move moves the message of a folder that has a Message-ID, or removes it if to
// is "".
func (s *Server) Move(from, to, messageID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.folders[from]
	i := slices.IndexFunc(f.messages, func(m *message) bool { return mailbox.MessageID(m.raw) == messageID })
	if i < 0 {
		return
	}
	m := f.messages[i]
	f.messages = slices.Delete(f.messages, i, i+1)
	f.seq++
	f.gone = append(f.gone, departed{m.id, m.added, f.seq})
	if to != "" {
		s.add(to, m.raw, m.received, m.flags)
	}
}

// Void changes the ids of all messages of a folder.
func (s *Server) Void(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.folders[name]
	s.folders[name] = &folder{validity: old.validity + 1}
	for _, m := range old.messages {
		s.add(name, m.raw, m.received, m.flags)
	}
}
