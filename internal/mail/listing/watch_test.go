package listing

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWait(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	w := &Watcher{Interval: time.Hour}
	defer w.Close()
	if err := w.Wait(t.Context(), []string{dir}); err != nil {
		t.Fatalf("the first wait: %v", err)
	}
	if w.failed {
		t.Skip("the system gives no notifications")
	}
	// A file written before the wait ends it too.
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(t.Context(), []string{dir}); err != nil {
		t.Errorf("after a change: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Wait(ctx, []string{dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancellation: %v", err)
	}
}

// TestBlind checks that Wait uses the interval for a folder that cannot be
// watched.
func TestBlind(t *testing.T) {
	t.Parallel()

	w := &Watcher{Interval: time.Millisecond}
	if err := w.Wait(t.Context(), []string{filepath.Join(t.TempDir(), "absent")}); err != nil {
		t.Errorf("an absent folder: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Wait(t.Context(), []string{t.TempDir()}); err != nil {
		t.Errorf("after Close: %v", err)
	}
}
