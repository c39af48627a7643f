package listing

import (
	"context"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// defaultInterval bounds a wait with notifications, in case one is lost.
	defaultInterval = time.Minute
	// blindInterval bounds a wait without notifications.
	blindInterval = 5 * time.Second
	// settle is how long further notifications are collected after the first.
	settle = 20 * time.Millisecond
)

// Watcher waits for changes. The zero Watcher is ready to use.
type Watcher struct {
	// Interval is the longest wait; 0 means a minute.
	Interval time.Duration

	events *fsnotify.Watcher
	failed bool
}

// Wait returns when something may have changed in one of the folders since the
// last Wait for it, or when the interval is over. For a folder that was not
// watched before, it returns immediately. It returns ctx's error when ctx ends.
func (w *Watcher) Wait(ctx context.Context, folders []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	began, blind := w.watch(folders)
	if began {
		return nil
	}
	interval := w.Interval
	if interval <= 0 {
		interval = defaultInterval
	}
	if blind {
		interval = min(interval, blindInterval)
	}
	timer := time.NewTimer(interval)
	defer timer.Stop()
	if w.events == nil {
		return w.gather(ctx, timer, nil, nil)
	}
	return w.gather(ctx, timer, w.events.Events, w.events.Errors)
}

func (w *Watcher) gather(ctx context.Context, timer *time.Timer, events <-chan fsnotify.Event, errs <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-events:
			timer.Reset(settle)
		case <-errs: // such as an overflow: any file may have changed
			timer.Reset(settle)
		}
	}
}

// watch begins to watch folders. It reports whether one of them is new, and
// whether one cannot be watched.
func (w *Watcher) watch(folders []string) (began, blind bool) {
	if w.events == nil && !w.failed {
		events, err := fsnotify.NewWatcher()
		w.events, w.failed = events, err != nil
	}
	if w.events == nil {
		return false, true
	}
	watched := w.events.WatchList()
	for _, folder := range folders {
		if slices.Contains(watched, folder) {
			continue
		}
		if err := w.events.Add(folder); err != nil {
			blind = true
			continue
		}
		began = true
	}
	return began, blind
}

// Close ends the notifications.
func (w *Watcher) Close() error {
	if w.events == nil {
		return nil
	}
	events := w.events
	w.events, w.failed = nil, true
	return events.Close()
}
