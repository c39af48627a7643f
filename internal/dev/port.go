package dev

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-dev/countersign/internal/safehttp"
)

// notesAddressFile is the file of Dir with the last address of the example
// server. Pending actions are bound to the address of their source, so after a
// start at another one they could only be denied.
const notesAddressFile = "notes.address"

// anyPort is an address of this machine with a free port.
const anyPort = "127.0.0.1:0"

// notesAddress returns the address for the example server: its last one, if
// that is free.
func (e *Environment) notesAddress(ctx context.Context) string {
	text, err := os.ReadFile(filepath.Join(e.dir, notesAddressFile))
	if err != nil {
		return anyPort
	}
	last, err := netip.ParseAddrPort(strings.TrimSpace(string(text)))
	if err != nil || !safehttp.Local(last.Addr().String()) {
		return anyPort
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", last.String())
	if err != nil || l.Close() != nil {
		return anyPort
	}
	return last.String()
}

// keepNotesAddress writes down where the example server listens.
func (e *Environment) keepNotesAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(e.dir, notesAddressFile), []byte(u.Host+"\n"), 0o600)
}
