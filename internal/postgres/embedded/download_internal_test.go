package embedded

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// repository serves an archive of programs as a Maven repository does, and
// counts the requests for it.
func repository(t *testing.T) (url string, asked *atomic.Int64) {
	t.Helper()
	programs, err := os.ReadFile("testdata/programs.txz")
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	w := zip.NewWriter(&jar)
	entry, err := w.Create("postgres.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write(programs); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(jar.Bytes())
	asked = &atomic.Int64{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".sha256") {
			w.Write([]byte(hex.EncodeToString(sum[:])))
			return
		}
		asked.Add(1)
		w.Write(jar.Bytes())
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

// cache returns an empty cache folder that an unprivileged account may enter.
func cache(t *testing.T) string {
	t.Helper()
	return filepath.Join(program(t, ""), "cache")
}

func TestFetchDownloadsOnce(t *testing.T) {
	t.Parallel()
	url, asked := repository(t)
	dir := cache(t)
	acc, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}

	for range 2 {
		bin, err := fetch(t.Context(), dir, url, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatalf("fetch() = %v, want nil", err)
		}
		got, err := inspect(t.Context(), bin, acc)
		if err != nil || got.major != 18 {
			t.Errorf("inspect(%s) = %+v, %v, want major version 18", bin, got, err)
		}
	}

	if n := asked.Load(); n != 1 {
		t.Errorf("the repository was asked %d times, want 1", n)
	}
	left, err := filepath.Glob(filepath.Join(dir, "download-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v, want nothing", left, err)
	}
}

func TestFetchReturnsTheCause(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)

	_, err := fetch(t.Context(), cache(t), srv.URL, slog.New(slog.DiscardHandler))

	if err == nil || !strings.Contains(err.Error(), "no version found") {
		t.Errorf("fetch() = %v, want the library's reason", err)
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	waiting, release := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(waiting)
		<-release
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(srv.Close)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends with the handler's start
		<-waiting
		cancel()
	}()

	_, err := fetch(ctx, cache(t), srv.URL, slog.New(slog.DiscardHandler))

	if !errors.Is(err, context.Canceled) {
		t.Errorf("fetch() = %v, want %v", err, context.Canceled)
	}
	close(release)
}
