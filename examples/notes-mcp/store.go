package main

import (
	"bufio"
	"bytes"
	"cmp"
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
)

// publishLog is the file in which every try to publish leaves a line.
const publishLog = "publish.log"

// errNoNote means that there is no note of an id.
var errNoNote = errors.New("no such note")

// validID is what an id looks like; nothing else becomes part of a file name.
var validID = regexp.MustCompile(`^[0-9a-z]{1,64}$`)

// store keeps notes as files named <id>.md, with the title as a heading on the
// first line. All access goes through an os.Root, which nothing can leave.
type store struct {
	dir   string
	root  *os.Root
	flaky int

	mu sync.Mutex // held while a note or the log changes
}

// note is one note.
type note struct {
	ID    string `json:"id" jsonschema:"the note's id"`
	Title string `json:"title" jsonschema:"the note's title"`
	Body  string `json:"body" jsonschema:"the note's text"`
}

// try is a line of publish.log.
type try struct {
	Time time.Time `json:"time"`
	ID   string    `json:"id"`
	Try  int       `json:"try"`
	OK   bool      `json:"ok"`
}

// openStore opens a folder, which it makes if it is missing. Publishing fails
// flaky times for each note.
func openStore(dir string, flaky int) (*store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &store{dir: dir, root: root, flaky: flaky}, nil
}

func (s *store) close() { _ = s.root.Close() }

func (s *store) path(id string) string { return filepath.Join(s.dir, file(id)) }

func file(id string) string { return id + ".md" }

// create writes a note. Under a key that was used before it returns the note
// that was made then, and changes nothing.
func (s *store) create(key, title, body string) (note, error) {
	id := strings.ToLower(rand.Text())
	if key != "" {
		id = idOf(key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The note appears whole or not at all, and never over another: also when
	// two processes share the folder, or this one is killed half-way.
	draft := "." + strings.ToLower(rand.Text()) + ".tmp"
	if err := s.root.WriteFile(draft, fmt.Appendf(nil, "# %s\n\n%s", title, body), 0o640); err != nil {
		return note{}, err
	}
	err := s.root.Link(draft, file(id))
	if rmErr := s.root.Remove(draft); rmErr != nil {
		return note{}, rmErr
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return note{}, err
	}
	return s.read(id)
}

// idOf is the id of the note that is made under a key.
func idOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// read returns a note.
func (s *store) read(id string) (note, error) {
	if !validID.MatchString(id) {
		return note{}, errNoNote
	}
	raw, err := s.root.ReadFile(file(id))
	if errors.Is(err, fs.ErrNotExist) {
		return note{}, errNoNote
	}
	if err != nil {
		return note{}, err
	}
	heading, body, _ := strings.Cut(string(raw), "\n")
	return note{ID: id, Title: strings.TrimPrefix(heading, "# "), Body: strings.TrimPrefix(body, "\n")}, nil
}

// list returns all notes by title, without their bodies.
func (s *store) list() ([]note, error) {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	notes := []note{}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".md")
		if !ok || !validID.MatchString(id) {
			continue
		}
		n, err := s.read(id)
		if errors.Is(err, errNoNote) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}
		n.Body = ""
		notes = append(notes, n)
	}
	slices.SortFunc(notes, func(a, b note) int {
		return cmp.Or(cmp.Compare(a.Title, b.Title), cmp.Compare(a.ID, b.ID))
	})
	return notes, nil
}

// add puts text at a note's end.
func (s *store) add(id, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.read(id); err != nil {
		return err
	}
	return s.write(file(id), []byte(text))
}

// remove deletes a note.
func (s *store) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.read(id); err != nil {
		return err
	}
	return s.root.Remove(file(id))
}

// publish logs one try and reports how many there were, and whether this one
// worked.
func (s *store) publish(id string, now time.Time) (tries int, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.read(id); err != nil {
		return 0, false, err
	}
	tries, err = s.tries(id)
	if err != nil {
		return 0, false, err
	}
	tries++
	ok = tries > s.flaky
	line, err := json.Marshal(try{Time: now.UTC(), ID: id, Try: tries, OK: ok})
	if err != nil {
		return 0, false, err
	}
	return tries, ok, s.write(publishLog, append(line, '\n'))
}

// tries counts a note's lines in the log.
func (s *store) tries(id string) (int, error) {
	raw, err := s.root.ReadFile(publishLog)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n := 0
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		var t try
		if err := json.Unmarshal(lines.Bytes(), &t); err == nil && t.ID == id {
			n++
		}
	}
	return n, lines.Err()
}

// write appends to a file, which it makes if it is missing.
func (s *store) write(name string, data []byte) error {
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
