package connection_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// connections returns a Pool that opens fakes, and the fakes in the order in
// which they were opened.
func connections() (*connection.Pool, *[]*sourcetest.Source) {
	opened := new([]*sourcetest.Source)
	live := connection.NewPool(connection.Config{Open: func(envelope.TenantID, catalog.Source) (source.Source, error) {
		src := sourcetest.NewSource(tenanttest.Tool("act"), tenanttest.Tool("more"))
		*opened = append(*opened, src)
		return src, nil
	}})
	return live, opened
}

// open reports whether a source still accepts calls.
func open(t *testing.T, src source.Source) bool {
	t.Helper()
	return src.Execute(t.Context(), source.Call{Key: "k", Tool: "act"}).Kind == source.KindDone
}

func TestPoolKeepsConnectionsUntilTheirSourceChanges(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	live, opened := connections()
	get := func() source.Source {
		t.Helper()
		src, err := live.Get(s.snapshot(), "src")
		if err != nil {
			t.Fatal(err)
		}
		return src
	}

	first := get()
	s.mode("", "*", envelope.ModeAllow)
	same := get()
	changed := tenanttest.Builtin("src")
	changed.Config = json.RawMessage(`{"a":1}`)
	s.Put(changed)
	second := get()

	if first != same || second == first || len(*opened) != 2 {
		t.Fatalf("%d connections were opened, want one, and another after the change", len(*opened))
	}
	if live.Sweep(); !open(t, first) {
		t.Error("the first sweep closed a connection on which calls may still run")
	}
	if live.Sweep(); open(t, first) || !open(t, second) {
		t.Error("want the second sweep to close what was replaced and nothing else")
	}
	if live.Close(); open(t, second) {
		t.Error("Close left a connection open")
	}
}

func TestSweepLeavesConnectionsWithRunningCalls(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	live, opened := connections()
	src, err := live.Get(s.snapshot(), "src")
	if err != nil {
		t.Fatal(err)
	}
	entered, gate := make(chan struct{}), make(chan struct{})
	(*opened)[0].On("act", func(context.Context, source.Call) sourcetest.Step {
		close(entered)
		<-gate
		return sourcetest.Done("")
	})
	ended := make(chan source.Outcome)
	go func() { ended <- src.Execute(t.Context(), source.Call{Key: "k", Tool: "act"}) }() // received below
	<-entered
	changed := tenanttest.Builtin("src")
	changed.Config = json.RawMessage(`{"a":1}`)
	s.Put(changed)
	if _, err := live.Get(s.snapshot(), "src"); err != nil {
		t.Fatal(err)
	}

	for range 3 {
		live.Sweep()
	}
	close(gate)

	if out := <-ended; out.Kind != source.KindDone {
		t.Errorf("the call on a replaced connection ended with %s %q, want done", out.Kind, out.Code)
	}
	(*opened)[0].On("act", func(context.Context, source.Call) sourcetest.Step { return sourcetest.Done("") })
	if live.Sweep(); open(t, src) {
		t.Error("the sweep after the call left the connection open")
	}
}

func TestPoolOpensNoDisabledSource(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	live, _ := connections()
	off := tenanttest.Builtin("src")
	off.Enabled = false
	s.Put(off)

	_, disabled := live.Get(s.snapshot(), "src")
	_, missing := live.Get(s.snapshot(), "nothing")

	if !errors.Is(disabled, fault.NotFound) || !errors.Is(missing, fault.NotFound) {
		t.Errorf("Get = %v, %v, want fault.NotFound", disabled, missing)
	}
}

func TestPoolRejectsUnknownKinds(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	live := connection.NewPool(connection.Config{})
	t.Cleanup(live.Close)
	s.Put(catalog.Source{ID: "web", Kind: catalog.KindMCP, Enabled: true, Config: json.RawMessage(`{"transport":"http","url":"http://127.0.0.1:1/mcp"}`)})
	s.Put(catalog.Source{ID: "bad", Kind: catalog.KindMCP, Enabled: true, Config: json.RawMessage(`{"transport":"fax"}`)})
	s.Put(catalog.Source{ID: "encrypted", Kind: catalog.KindMCP, Enabled: true, Secret: []byte("x"), Config: json.RawMessage(`{"transport":"http","url":"http://127.0.0.1:1/mcp"}`)})
	snap := s.snapshot()

	for id, works := range map[string]bool{"src": true, "web": true, "bad": false, "encrypted": false} {
		if _, err := live.Get(snap, id); (err == nil) != works {
			t.Errorf("Get(%s) = %v, want it to work: %t", id, err, works)
		}
	}
}

func TestProgramsStartOnlyForAllowedTenants(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.Put(catalog.Source{ID: "program", Kind: catalog.KindMCP, Enabled: true, Config: json.RawMessage(`{"transport":"stdio","command":["true"]}`)})
	snap := s.snapshot()
	for name, test := range map[string]struct {
		stdio   func(envelope.TenantID) bool
		allowed bool
	}{
		"none":     {nil, false},
		"this one": {func(of envelope.TenantID) bool { return of == s.Tenant }, true},
		"others":   {func(of envelope.TenantID) bool { return of != s.Tenant }, false},
	} {
		live := connection.NewPool(connection.Config{Stdio: test.stdio})

		_, err := live.Get(snap, "program")

		live.Close()
		if errors.Is(err, fault.Denied) == test.allowed || (err == nil) != test.allowed {
			t.Errorf("Get() with programs for %s = %v, want it to work: %t", name, err, test.allowed)
		}
	}
}

func TestParseMCPConfig(t *testing.T) {
	t.Parallel()
	for raw, pointer := range map[string]string{
		`{"transport":"http","url":"http://x"}`:                   "",
		`{"transport":"stdio","command":["x","y"],"dir":"/"}`:     "",
		`{"transport":"http","url":"http://x","timeout":"1h"}`:    "",
		`{"transport":"http","url":"http://x","timeout":"61m"}`:   "/config/timeout",
		`{"transport":"http","url":"http://x","timeout":"10ms"}`:  "/config/timeout",
		`{"transport":"http"}`:                                    "/config/url",
		`{"transport":"http","url":"http://x","command":["x"]}`:   "/config/command",
		`{"transport":"stdio"}`:                                   "/config/command",
		`{"transport":"stdio","command":["x"],"url":"http://x"}`:  "/config/url",
		`{"transport":"fax"}`:                                     "/config/transport",
		`{"transport":"http","url":"http://x","password":"hush"}`: "/config",
		`[]`: "/config",
	} {
		_, err := connection.ParseMCPConfig(json.RawMessage(raw))

		invalid, ok := errors.AsType[*envelope.InvalidError](err)
		if ok != (pointer != "") || ok && invalid.Fields[0].Pointer != pointer || err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("ParseMCPConfig(%s) = %v, want %q", raw, err, pointer)
		}
	}
}

func TestRefreshStoresTheListing(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	live, opened := connections()
	refresher := connection.NewRefresher(s.DB, s.cache, live, slog.New(slog.DiscardHandler))

	first := refresher.Refresh(t.Context(), s.Tenant, "src")
	listed := len(s.snapshot().Tools())
	(*opened)[0].FailList(errors.New("password hunter2 refused"))
	second := refresher.Refresh(t.Context(), s.Tenant, "src")

	if first != nil || listed != 2 {
		t.Errorf("Refresh = %v with %d tools, want 2", first, listed)
	}
	// The version is unchanged, so only a new cache reads it.
	s.cache = settings.NewCache()
	snap := s.snapshot()
	src, _ := snap.Source("src")
	if second == nil || src.ListError == "" || strings.Contains(src.ListError, "hunter2") || len(snap.Tools()) != 2 {
		t.Errorf("Refresh of a source that fails = %v; noted %q with %d tools, want a reason without the cause and the tools as they were", second, src.ListError, len(snap.Tools()))
	}
}

func TestRefreshStaleListsOldSources(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.DB = dbtest.DB(t)
	tx := func(sql string, args ...any) {
		t.Helper()
		s.Must(func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "RESET ROLE")
			if err == nil {
				_, err = tx.Exec(ctx, sql, args...)
			}
			return err
		})
	}
	tx("INSERT INTO tenants (tenant_id, name) VALUES ($1, 'refresh')", s.Tenant.String())
	for _, id := range []string{"never", "old", "new", "off"} {
		src := tenanttest.Builtin(id)
		src.Enabled = id != "off"
		s.Put(src)
	}
	tx("UPDATE sources SET listed_at = now() - interval '1 hour' WHERE source_id = 'old'")
	tx("UPDATE sources SET listed_at = now() WHERE source_id = 'new'")
	live, opened := connections()

	err := connection.NewRefresher(s.DB, settings.NewCache(), live, slog.New(slog.DiscardHandler)).RefreshStale(t.Context(), time.Minute)

	if err != nil || len(*opened) != 2 {
		t.Errorf("RefreshStale = %v after %d listings, want those of never and old", err, len(*opened))
	}
}

// TestFailedListingsAreTriedAgainSoon moves the time of the last listing back
// instead of waiting.
func TestFailedListingsAreTriedAgainSoon(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	stale := func(ago string) bool {
		t.Helper()
		var found []catalog.StaleSource
		s.Must(func(ctx context.Context, tx pgx.Tx) (err error) {
			if _, err = tx.Exec(ctx, "UPDATE sources SET listed_at = now() - $1::interval", ago); err == nil {
				found, err = catalog.Stale(ctx, tx, 300, 10)
			}
			return err
		})
		return len(found) == 1
	}
	fails := func() {
		s.Must(func(ctx context.Context, tx pgx.Tx) error {
			return catalog.PutListError(ctx, tx, s.Tenant, "src", "no")
		})
	}

	fails()
	soon, once := stale("4 seconds"), stale("6 seconds")
	for range 2 {
		fails()
	}
	sooner, twice := stale("19 seconds"), stale("21 seconds")
	for range 20 {
		fails()
	}
	later, most := stale("299 seconds"), stale("301 seconds")
	s.Put(tenanttest.Builtin("src"))
	same := stale("1 second")
	changed := tenanttest.Builtin("src")
	changed.Secret = []byte("another")
	s.Put(changed)
	asked := stale("1 second")

	if soon || !once || sooner || !twice || later || !most {
		t.Errorf("due after 4s, 6s of one failure: %t, %t; after 19s, 21s of three: %t, %t; after 299s, 301s of many: %t, %t", soon, once, sooner, twice, later, most)
	}
	if same || !asked {
		t.Errorf("due after it was stored unchanged: %t, after new credentials: %t; want the second alone", same, asked)
	}
}

func TestVault(t *testing.T) {
	t.Parallel()
	key := func(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) }
	vault := func(text string) connection.Cipher {
		t.Helper()
		v, err := connection.NewCipher(text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	tenant, secret := envelope.TenantID(uuid.New()), []byte("hunter2")
	v := vault(key(1))

	encrypted, err := v.Encrypt(tenant, "src", secret)
	again, _ := v.Encrypt(tenant, "src", secret)
	opened, openErr := v.Decrypt(tenant, "src", encrypted)

	if err != nil || openErr != nil || !bytes.Equal(opened, secret) || bytes.Contains(encrypted, secret) || bytes.Equal(encrypted, again) {
		t.Errorf("Encrypt and Decrypt = %q, %v, %v, want the secret, and each ciphertext different", opened, err, openErr)
	}
	damaged := bytes.Clone(encrypted)
	damaged[len(damaged)-1] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"another key":    func() ([]byte, error) { return vault(key(2)).Decrypt(tenant, "src", encrypted) },
		"no key":         func() ([]byte, error) { return connection.Cipher{}.Decrypt(tenant, "src", encrypted) },
		"another tenant": func() ([]byte, error) { return v.Decrypt(envelope.TenantID(uuid.New()), "src", encrypted) },
		"another source": func() ([]byte, error) { return v.Decrypt(tenant, "other", encrypted) },
		"damaged":        func() ([]byte, error) { return v.Decrypt(tenant, "src", damaged) },
		"cut short":      func() ([]byte, error) { return v.Decrypt(tenant, "src", encrypted[:5]) },
		"empty":          func() ([]byte, error) { return v.Decrypt(tenant, "src", nil) },
	} {
		if got, err := open(); err == nil || got != nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open with %s = %q, %v, want an error", name, got, err)
		}
	}
	if _, err := (connection.Cipher{}).Encrypt(tenant, "src", secret); !errors.Is(err, fault.Conflict) {
		t.Errorf("Encrypt without a key = %v, want fault.Conflict", err)
	}
	for _, bad := range []string{"x", key(1)[:20], base64.StdEncoding.EncodeToString([]byte("short"))} {
		if _, err := connection.NewCipher(bad); err == nil || strings.Contains(err.Error(), bad) && len(bad) > 5 {
			t.Errorf("NewVault = %v, want an error without the key", err)
		}
	}
}
