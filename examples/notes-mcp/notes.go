package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// metaKey is where a caller puts the key under which a note is made once.
	metaKey = "countersign.dev/idempotency-key"
	// publishLog is the file in which every try to publish leaves a line.
	publishLog = "publish.log"
	// maxTitle bounds a title in characters, maxBody a text in bytes.
	maxTitle = 200
	maxBody  = 1 << 20
)

// errNoNote is the error for an unknown id.
var errNoNote = errors.New("no such note")

// validID matches ids; nothing else becomes part of a file name.
var validID = regexp.MustCompile(`^[0-9a-z]{1,64}$`)

// notes are files named <id>.md, with the title as a heading on the first line.
// All access goes through an os.Root, which nothing can leave. Publishing fails
// flaky times for each note.
type notes struct {
	dir   string
	root  *os.Root
	flaky int

	mu sync.Mutex // held during each call
}

// openNotes opens a folder, created if it is missing.
func openNotes(dir string, flaky int) (*notes, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	return &notes{dir: dir, root: root, flaky: flaky}, err
}

// server returns a server with the tools.
func (n *notes) server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "notes-mcp", Title: "Notes", Version: "1.0.0"}, nil)
	read := mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(false)}
	write := mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(false)}
	destroy := mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(false)}
	publish := mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(true)}
	add(s, n, "notes.create", "Create a note", "Writes a new note. Under an idempotency key in _meta it is written once.", write, n.create)
	add(s, n, "notes.read", "Read a note", "Returns a note.", read, func(_ string, in idIn) (note, error) { return n.read(in.ID) })
	add(s, n, "notes.list", "List notes", "Returns the ids and titles of all notes.", read, n.list)
	add(s, n, "notes.find", "Find a note", "Reports whether a note exists that was written under an idempotency key.", read, n.find)
	add(s, n, "notes.append", "Append to a note", "Puts text at the end of a note. Doing it twice puts it there twice.", write, n.append)
	add(s, n, "notes.delete", "Delete a note", "Deletes a note for good.", destroy, n.remove)
	add(s, n, "notes.publish", "Publish a note", "Publishes a note. It fails at first, and may be tried again without harm.", publish, n.publish)
	return s
}

// add adds a tool to a server. The tool gets the idempotency key of the call.
func add[In, Out any](s *mcp.Server, n *notes, name, title, about string, hints mcp.ToolAnnotations, tool func(key string, in In) (Out, error)) {
	hints.Title = title
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: about, Annotations: &hints},
		func(_ context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			key, _ := req.Params.Meta[metaKey].(string)
			out, err := tool(key, in)
			return nil, out, err
		})
}

type createIn struct {
	Title string `json:"title" jsonschema:"one line of at most 200 characters"`
	Body  string `json:"body" jsonschema:"the text, at most 1 MiB"`
}

type createOut struct {
	ID   string `json:"id" jsonschema:"the note's id"`
	Path string `json:"path" jsonschema:"the file that holds the note"`
}

// create writes a note. Under a key that was used before it returns the note
// that was made then, and changes nothing.
func (n *notes) create(key string, in createIn) (createOut, error) {
	switch {
	case strings.TrimSpace(in.Title) == "" || len([]rune(in.Title)) > maxTitle || strings.ContainsAny(in.Title, "\r\n"):
		return createOut{}, fmt.Errorf("title must be one line of 1 to %d characters", maxTitle)
	case len(in.Body) > maxBody:
		return createOut{}, fmt.Errorf("body must be at most %d bytes", maxBody)
	}
	id := idOf(cmp.Or(key, rand.Text()))
	// The note appears whole or not at all, and never over another: also when
	// two processes share the folder, or this one is killed half-way.
	draft := "." + rand.Text() + ".tmp"
	if err := n.root.WriteFile(draft, fmt.Appendf(nil, "# %s\n\n%s", in.Title, in.Body), 0o640); err != nil {
		return createOut{}, err
	}
	err := n.root.Link(draft, id+".md")
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return createOut{ID: id, Path: filepath.Join(n.dir, id+".md")}, errors.Join(err, n.root.Remove(draft))
}

// idOf returns the id of the note that is made under a key.
func idOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

type idIn struct {
	ID string `json:"id" jsonschema:"the note's id"`
}

type note struct {
	ID    string `json:"id" jsonschema:"the note's id"`
	Title string `json:"title" jsonschema:"the note's title"`
	Body  string `json:"body" jsonschema:"the note's text"`
}

func (n *notes) read(id string) (note, error) {
	if !validID.MatchString(id) {
		return note{}, errNoNote
	}
	raw, err := n.root.ReadFile(id + ".md")
	if errors.Is(err, fs.ErrNotExist) {
		err = errNoNote
	}
	heading, body, _ := strings.Cut(string(raw), "\n")
	return note{ID: id, Title: strings.TrimPrefix(heading, "# "), Body: strings.TrimPrefix(body, "\n")}, err
}

type listed struct {
	ID    string `json:"id" jsonschema:"the note's id"`
	Title string `json:"title" jsonschema:"the note's title"`
}

type listOut struct {
	Notes []listed `json:"notes" jsonschema:"all notes by title"`
}

func (n *notes) list(string, struct{}) (listOut, error) {
	out := listOut{Notes: []listed{}}
	names, err := fs.Glob(n.root.FS(), "*.md")
	for _, name := range names {
		read, readErr := n.read(strings.TrimSuffix(name, ".md"))
		if errors.Is(readErr, errNoNote) {
			continue // another process has deleted it, or it is not a note
		}
		err = errors.Join(err, readErr)
		out.Notes = append(out.Notes, listed{ID: read.ID, Title: read.Title})
	}
	slices.SortFunc(out.Notes, func(a, b listed) int {
		return cmp.Or(cmp.Compare(a.Title, b.Title), cmp.Compare(a.ID, b.ID))
	})
	return out, err
}

type findIn struct {
	Key string `json:"key" jsonschema:"the idempotency key under which a note may have been made"`
}

type findOut struct {
	Found bool   `json:"found" jsonschema:"whether there is such a note"`
	ID    string `json:"id,omitempty" jsonschema:"the note's id, if there is one"`
}

func (n *notes) find(_ string, in findIn) (findOut, error) {
	found, err := n.read(idOf(in.Key))
	if errors.Is(err, errNoNote) {
		return findOut{}, nil
	}
	return findOut{Found: err == nil, ID: found.ID}, err
}

type appendIn struct {
	ID   string `json:"id" jsonschema:"the note's id"`
	Text string `json:"text" jsonschema:"what to put at the end, at most 1 MiB"`
}

func (n *notes) append(_ string, in appendIn) (idIn, error) {
	if len(in.Text) > maxBody {
		return idIn{}, fmt.Errorf("text must be at most %d bytes", maxBody)
	}
	if _, err := n.read(in.ID); err != nil {
		return idIn{}, err
	}
	return idIn{ID: in.ID}, n.write(in.ID+".md", []byte(in.Text))
}

func (n *notes) remove(_ string, in idIn) (idIn, error) {
	if _, err := n.read(in.ID); err != nil {
		return idIn{}, err
	}
	return in, n.root.Remove(in.ID + ".md")
}

type publishOut struct {
	ID    string `json:"id" jsonschema:"the note's id"`
	Tries int    `json:"tries" jsonschema:"how many tries it took, this one included"`
}

// try is a line of publish.log.
type try struct {
	Time time.Time `json:"time"`
	ID   string    `json:"id"`
	Try  int       `json:"try"`
	OK   bool      `json:"ok"`
}

// codeBusy is an error of the server's own in JSON-RPC.
const codeBusy = -32000

// notExecuted is the data of an error: the call was not executed and may be sent
// again.
var notExecuted = json.RawMessage(`{"countersign.dev/outcome":"rate_limited"}`)

// publish logs one try, and fails for the first tries of a note.
func (n *notes) publish(_ string, in idIn) (publishOut, error) {
	if _, err := n.read(in.ID); err != nil {
		return publishOut{}, err
	}
	log, err := n.root.ReadFile(publishLog)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return publishOut{}, err
	}
	tries := 1 + bytes.Count(log, fmt.Appendf(nil, `"id":%q`, in.ID))
	line, err := json.Marshal(try{Time: time.Now().UTC(), ID: in.ID, Try: tries, OK: tries > n.flaky})
	if err == nil {
		err = n.write(publishLog, append(line, '\n'))
	}
	if err == nil && tries <= n.flaky {
		// An error is an answer, unless its data reports that nothing was executed.
		err = &jsonrpc.Error{Code: codeBusy, Message: "the press is busy, try again", Data: notExecuted}
	}
	return publishOut{ID: in.ID, Tries: tries}, err
}

// write appends to a file, created if it is missing.
func (n *notes) write(name string, data []byte) error {
	f, err := n.root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
