package dbtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// server returns the address of a server for this test only.
func server(t *testing.T) string {
	t.Helper()
	s, err := embedded.Start(t.Context(), embedded.Config{Fast: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s.URL()
}

// process is a cluster as another process would open it.
func process(t *testing.T, address string) *cluster {
	t.Helper()
	c, err := connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.die(t) })
	return c
}

// die closes the connections, as the end of a process does.
func (c *cluster) die(t *testing.T) {
	t.Helper()
	c.admin.Close()
	if err := c.locks.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestProcessesBuildOneTemplate(t *testing.T) {
	t.Parallel()
	address := server(t)

	clusters := make([]*cluster, 4)
	var g errgroup.Group
	for i := range clusters {
		g.Go(func() error {
			c, err := connect(t.Context(), address)
			if err != nil {
				return err
			}
			clusters[i] = c
			_, err = c.create(t.Context(), c.template)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}

	names, err := ownDatabases(t.Context(), clusters[0].locks)
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]int)
	for _, name := range names {
		kind, _, _ := strings.Cut(strings.TrimPrefix(name, anyPrefix), "_")
		kinds[kind]++
	}
	if diff := cmp.Diff(map[string]int{"template": 1, "shared": 1, "run": 4}, kinds); diff != "" {
		t.Errorf("databases per kind (-want +got):\n%s", diff)
	}
	for _, c := range clusters {
		c.die(t)
	}
}

func TestDeadProcessesAreSweptUp(t *testing.T) {
	t.Parallel()
	address := server(t)
	dead, err := connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dead.create(t.Context(), dead.template); err != nil {
		t.Fatal(err)
	}
	living := process(t, address)
	kept, err := living.create(t.Context(), living.template)
	if err != nil {
		t.Fatal(err)
	}
	// The leftovers of a process with an older schema, a database in use by one
	// with a newer schema, and an unfinished template.
	const inUse = templatePrefix + "0123456789ab"
	for _, name := range []string{templatePrefix + "ba9876543210", sharedPrefix + "ba9876543210", draftPrefix + "ba9876543210", inUse} {
		if err := copyDatabase(t.Context(), living.admin, name, "template0"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := living.locks.Exec(t.Context(), "SELECT pg_advisory_lock_shared($1, $2)", schemaLock, lockKey("0123456789ab")); err != nil {
		t.Fatal(err)
	}
	dead.die(t)

	next := process(t, address)

	got, err := ownDatabases(t.Context(), next.locks)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{kept, next.shared(), inUse, next.template}
	slices.Sort(want) // the digest of the schema is in the names
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("databases (-want +got):\n%s", diff)
	}
}

func TestConnectDoesNotShowThePassword(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"host=db password=hunter2", "postgres://u:hunter2@db:x/", "postgres://u:hunter2@%/"} {
		if _, err := connect(t.Context(), address); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("connect() = %v, want an error without the password", err)
		}
	}
}

func TestDigestDiffersByTree(t *testing.T) {
	t.Parallel()
	tree := func(files ...string) fstest.MapFS {
		m := fstest.MapFS{}
		for i := 0; i < len(files); i += 2 {
			m[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
		}
		return m
	}
	seen := make(map[string]int)
	for i, m := range []fstest.MapFS{tree("a", "1"), tree("a", "2"), tree("b", "1"), tree("a", "1", "b", "1"), tree()} {
		got, err := digest(m)
		if err != nil || len(got) != digestChars {
			t.Fatalf("digest(tree %d) = %q, %v, want %d characters", i, got, err, digestChars)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("digest(tree %d) = digest(tree %d) = %q", i, other, got)
		}
		seen[got] = i
	}
}

func TestSettingNames(t *testing.T) {
	t.Parallel()
	const statements = " set local role countersign_api; SET LOCAL countersign.tenant_id = 'x'; set local jit = off"

	got := settingNames(statements)

	if diff := cmp.Diff([]string{"role", "countersign.tenant_id", "jit"}, got); diff != "" {
		t.Errorf("settingNames() (-want +got):\n%s", diff)
	}
}
