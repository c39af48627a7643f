package dev

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/listen"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

// calendarUser is the login of the calendar of a demonstration.
const calendarUser = "demo"

// itemForm is the form of the path of an item. Its last part names the item's file.
var itemForm = regexp.MustCompile(`^/calendar/([a-z0-9-]{1,80}\.ics)$`)

// calendar serves one collection of CalDAV for a demonstration: it creates, returns
// and deletes items, under the conditions of the request. Each item is a file.
type calendar struct {
	dir, password, url string

	stop  context.CancelFunc
	ended chan error
}

// startCalendar serves a calendar until it is closed. Its files remain.
func (e *Environment) startCalendar(ctx context.Context) (*calendar, error) {
	c := &calendar{dir: filepath.Join(e.dir, "calendar"), password: rand.Text(), ended: make(chan error, 1)}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the calendar: %w", err)
	}
	listener, err := listen.Open(ctx, "127.0.0.1:0", "another network")
	if err != nil {
		return nil, err
	}
	c.url = "http://" + listener.Addr().String() + "/calendar/"
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	go func() { // close waits for it
		c.ended <- listen.Serve(serving, listener, listen.Config{Handler: c, Log: e.cfg.Log})
	}()
	return c, nil
}

// close stops serving.
func (c *calendar) close() error {
	c.stop()
	return <-c.ended
}

// ServeHTTP handles the requests for an item.
func (c *calendar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if user != calendarUser || subtle.ConstantTimeCompare([]byte(password), []byte(c.password)) != 1 {
		w.Header().Set("WWW-Authenticate", `Basic realm="calendar"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	name := itemForm.FindStringSubmatch(r.URL.Path)
	if name == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	status, body := c.answer(w, r, filepath.Join(c.dir, name[1]))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left reads nothing
}

// maxItem bounds the bytes of an item.
const maxItem = 64 << 10

// answer handles a request for the item in a file.
func (c *calendar) answer(w http.ResponseWriter, r *http.Request, file string) (status int, body []byte) {
	stored, err := os.ReadFile(file)
	exists := !errors.Is(err, fs.ErrNotExist)
	if err != nil && exists {
		return http.StatusInternalServerError, nil
	}
	tagged := r.Header.Get("If-Match")
	if exists && r.Header.Get("If-None-Match") == "*" || exists && tagged != "" && tagged != etag(stored) {
		return http.StatusPreconditionFailed, nil
	}
	switch {
	case r.Method == http.MethodPut:
		item, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxItem))
		if err != nil {
			return http.StatusRequestEntityTooLarge, nil
		}
		if err := os.WriteFile(file, item, 0o600); err != nil {
			return http.StatusInternalServerError, nil
		}
		w.Header().Set("ETag", etag(item))
		return http.StatusCreated, nil
	case !exists:
		return http.StatusNotFound, nil
	case r.Method == http.MethodGet:
		w.Header().Set("ETag", etag(stored))
		w.Header().Set("Content-Type", "text/calendar; charset=utf-8")
		return http.StatusOK, stored
	case r.Method == http.MethodDelete && os.Remove(file) == nil:
		return http.StatusNoContent, nil
	}
	return http.StatusMethodNotAllowed, nil
}

func etag(item []byte) string {
	sum := sha256.Sum256(item)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// register makes the calendar the source of reminders of a tenant.
func (c *calendar) register(ctx context.Context, e *Environment, of tenant) error {
	admin, err := e.Client(of.tokens.Admin)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"user": calendarUser, "calendars": map[string]string{"default": c.url}})
	if err != nil {
		return err
	}
	login, err := json.Marshal(map[string]any{"values": map[string]string{"password": c.password}})
	if err != nil {
		return err
	}
	if err := admin.PutSource(ctx, tag.DefaultSource, wire.SourceInput{Kind: catalog.KindDAV, Config: config, Credentials: login}); err != nil {
		return err
	}
	return connection.NewRefresher(e.pool, e.cache, e.live, e.cfg.Log).Refresh(ctx, of.id, tag.DefaultSource)
}

// item returns the lines of an item that name its title and its start.
func (c *calendar) item(uid string) (title, start string, err error) {
	text, err := os.ReadFile(filepath.Join(c.dir, uid+".ics"))
	if err != nil {
		return "", "", err
	}
	for line := range bytes.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
		switch name, _, _ = strings.Cut(name, ";"); {
		case name == "SUMMARY" && title == "":
			title = value
		case name == "DTSTART" && start == "":
			start = value
		}
	}
	return title, start, nil
}
