// Package davtest starts the CalDAV and CardDAV server Radicale for tests, from
// the distribution's package: on a free port, with its collections in a folder
// of its own and one user.
package davtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// User and Password are the login of the server.
const (
	User     = "ann"
	Password = "secret-of-the-tests"
)

// python is the interpreter of the distribution, whose packages others lack.
const python = "/usr/bin/python3"

const configuration = `[server]
hosts = %s
[auth]
type = htpasswd
htpasswd_filename = %s
htpasswd_encryption = plain
delay = 0
[storage]
filesystem_folder = %s
[logging]
level = warning
`

// ErrNotInstalled is the error without Radicale.
var ErrNotInstalled = errors.New("no Radicale is installed: scripts/servers.sh installs it")

// Server is a running Radicale.
type Server struct {
	// Calendar and AddressBook are the addresses of two collections.
	Calendar, AddressBook string
	t                     testing.TB
}

// New starts a server that stops when the test ends. It skips the test if
// Radicale is not installed.
func New(t testing.TB) *Server {
	t.Helper()
	if err := exec.CommandContext(t.Context(), python, "-c", "import radicale").Run(); err != nil {
		t.Skip(ErrNotInstalled)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := listener.Addr().String()
	_ = listener.Close() // the port is for the server
	dir := t.TempDir()
	for name, text := range map[string]string{
		"users":  User + ":" + Password + "\n",
		"config": fmt.Sprintf(configuration, at, filepath.Join(dir, "users"), filepath.Join(dir, "collections")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(python, "-m", "radicale", "--config", filepath.Join(dir, "config"))
	command.Stderr = log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = log.Close()
		if text, err := os.ReadFile(filepath.Join(dir, "log")); t.Failed() && err == nil {
			t.Logf("warnings of Radicale:\n%s", text)
		}
	})
	s := &Server{Calendar: "http://" + at + "/" + User + "/calendar/", AddressBook: "http://" + at + "/" + User + "/contacts/", t: t}
	ready(t, at)
	s.make(s.Calendar, `<C:calendar xmlns:C="urn:ietf:params:xml:ns:caldav"/>`)
	s.make(s.AddressBook, `<C:addressbook xmlns:C="urn:ietf:params:xml:ns:carddav"/>`)
	return s
}

// ready waits until the server accepts connections.
func ready(t testing.TB, at string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", at)
		if err == nil {
			_ = conn.Close()
			return
		}
		if ctx.Err() != nil {
			t.Fatal("Radicale accepts no connection within 30 s")
		}
	}
}

// make creates a collection.
func (s *Server) make(address, kind string) {
	s.t.Helper()
	body := `<D:mkcol xmlns:D="DAV:"><D:set><D:prop><D:resourcetype><D:collection/>` + kind + `</D:resourcetype></D:prop></D:set></D:mkcol>`
	if status, _ := s.Send("MKCOL", address, body); status != http.StatusCreated {
		s.t.Fatalf("MKCOL of %s = %d", address, status)
	}
}

// Send sends a request as the user, and returns the status and the body.
func (s *Server) Send(method, address, body string) (int, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.SetBasicAuth(User, Password)
	// Each request has a connection of its own: none is left after the test.
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// Items returns the items of a collection in one text.
func (s *Server) Items(address string) string {
	s.t.Helper()
	status, text := s.Send(http.MethodGet, address, "")
	if status != http.StatusOK {
		s.t.Fatalf("GET of %s = %d", address, status)
	}
	return text
}
