package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// metaKey is where a caller puts the key under which a note is made once.
const metaKey = "countersign.dev/idempotency-key"

// Limits of a note.
const (
	maxTitle = 200
	maxBody  = 1 << 20
)

type (
	createIn struct {
		Title string `json:"title" jsonschema:"one line of at most 200 characters"`
		Body  string `json:"body" jsonschema:"the text, at most 1 MiB"`
	}
	createOut struct {
		ID   string `json:"id" jsonschema:"the note's id"`
		Path string `json:"path" jsonschema:"the file that holds the note"`
	}
	idIn struct {
		ID string `json:"id" jsonschema:"the note's id"`
	}
	findIn struct {
		Key string `json:"key" jsonschema:"the idempotency key under which a note may have been made"`
	}
	findOut struct {
		Found bool   `json:"found" jsonschema:"whether there is such a note"`
		ID    string `json:"id,omitempty" jsonschema:"the note's id, if there is one"`
	}
	appendIn struct {
		ID   string `json:"id" jsonschema:"the note's id"`
		Text string `json:"text" jsonschema:"what to put at the end, at most 1 MiB"`
	}
	idOut struct {
		ID string `json:"id" jsonschema:"the note's id"`
	}
	listIn struct{}
	listed struct {
		ID    string `json:"id" jsonschema:"the note's id"`
		Title string `json:"title" jsonschema:"the note's title"`
	}
	listOut struct {
		Notes []listed `json:"notes" jsonschema:"all notes by title"`
	}
	publishOut struct {
		ID    string `json:"id" jsonschema:"the note's id"`
		Tries int    `json:"tries" jsonschema:"how many tries it took, this one included"`
	}
)

// newServer offers the tools over a store.
func newServer(notes *store) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "notes-mcp", Title: "Notes", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "notes.create",
		Description: "Writes a new note. Under an idempotency key in _meta it is written once.",
		Annotations: &mcp.ToolAnnotations{Title: "Create a note", DestructiveHint: new(false), OpenWorldHint: new(false)},
	}, notes.createTool)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "notes.read",
		Description: "Returns a note.",
		Annotations: &mcp.ToolAnnotations{Title: "Read a note", ReadOnlyHint: true, OpenWorldHint: new(false)},
	}, notes.readTool)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "notes.list",
		Description: "Returns the ids and titles of all notes.",
		Annotations: &mcp.ToolAnnotations{Title: "List notes", ReadOnlyHint: true, OpenWorldHint: new(false)},
	}, notes.listTool)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "notes.find",
		Description: "Says whether a note was made under an idempotency key, and is still there.",
		Annotations: &mcp.ToolAnnotations{Title: "Find a note", ReadOnlyHint: true, OpenWorldHint: new(false)},
	}, notes.findTool)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "notes.append",
		Description: "Puts text at the end of a note. Doing it twice puts it there twice.",
		Annotations: &mcp.ToolAnnotations{Title: "Append to a note", DestructiveHint: new(false), OpenWorldHint: new(false)},
	}, notes.appendTool)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "notes.delete",
		Description: "Deletes a note for good.",
		Annotations: &mcp.ToolAnnotations{Title: "Delete a note", DestructiveHint: new(true), OpenWorldHint: new(false)},
	}, notes.deleteTool)
	mcp.AddTool(s, &mcp.Tool{
		Name:        "notes.publish",
		Description: "Publishes a note. It fails at first, and may be tried again without harm.",
		Annotations: &mcp.ToolAnnotations{
			Title: "Publish a note", IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(true),
		},
	}, notes.publishTool)
	return s
}

func (s *store) createTool(_ context.Context, req *mcp.CallToolRequest, in createIn) (*mcp.CallToolResult, createOut, error) {
	switch {
	case strings.TrimSpace(in.Title) == "" || len([]rune(in.Title)) > maxTitle || strings.ContainsAny(in.Title, "\r\n"):
		return nil, createOut{}, fmt.Errorf("title must be one line of 1 to %d characters", maxTitle)
	case len(in.Body) > maxBody:
		return nil, createOut{}, fmt.Errorf("body must be at most %d bytes", maxBody)
	}
	key, _ := req.Params.Meta[metaKey].(string)
	n, err := s.create(key, in.Title, in.Body)
	if err != nil {
		return nil, createOut{}, err
	}
	return nil, createOut{ID: n.ID, Path: s.path(n.ID)}, nil
}

func (s *store) readTool(_ context.Context, _ *mcp.CallToolRequest, in idIn) (*mcp.CallToolResult, note, error) {
	n, err := s.read(in.ID)
	return nil, n, err
}

func (s *store) listTool(context.Context, *mcp.CallToolRequest, listIn) (*mcp.CallToolResult, listOut, error) {
	notes, err := s.list()
	out := listOut{Notes: []listed{}}
	for _, n := range notes {
		out.Notes = append(out.Notes, listed{ID: n.ID, Title: n.Title})
	}
	return nil, out, err
}

func (s *store) findTool(_ context.Context, _ *mcp.CallToolRequest, in findIn) (*mcp.CallToolResult, findOut, error) {
	n, err := s.read(idOf(in.Key))
	if errors.Is(err, errNoNote) {
		return nil, findOut{}, nil
	}
	return nil, findOut{Found: err == nil, ID: n.ID}, err
}

func (s *store) appendTool(_ context.Context, _ *mcp.CallToolRequest, in appendIn) (*mcp.CallToolResult, idOut, error) {
	if len(in.Text) > maxBody {
		return nil, idOut{}, fmt.Errorf("text must be at most %d bytes", maxBody)
	}
	return nil, idOut{ID: in.ID}, s.add(in.ID, in.Text)
}

func (s *store) deleteTool(_ context.Context, _ *mcp.CallToolRequest, in idIn) (*mcp.CallToolResult, idOut, error) {
	return nil, idOut(in), s.remove(in.ID)
}

func (s *store) publishTool(_ context.Context, _ *mcp.CallToolRequest, in idIn) (*mcp.CallToolResult, publishOut, error) {
	tries, ok, err := s.publish(in.ID, time.Now())
	if err != nil {
		return nil, publishOut{}, err
	}
	if !ok {
		return nil, publishOut{}, errors.New("the press is busy, try again")
	}
	return nil, publishOut{ID: in.ID, Tries: tries}, nil
}
