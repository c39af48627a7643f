package top

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

var update = flag.Bool("update", false, "rewrite golden files")

// busy is an overview with something of everything.
func busy() wire.Overview {
	at := time.Date(2026, 11, 20, 9, 30, 0, 0, time.Local)
	return wire.Overview{
		At: at, Estimated: true, Due: 120345, Scheduled: 3412, InFlight: 100, LeasesOverdue: 1, OldestDue: 93.5,
		Waiting: []wire.OverviewWaiting{
			{Reason: "bucket", Actions: 120000, OldestDue: 5400}, {Reason: "quiet_hours", Actions: 3000, NextIn: new(41400.0)},
			{Reason: "turn", Actions: 345, OldestDue: 93.5}, {Reason: "retry", Actions: 400, NextIn: new(0.4)},
			{Reason: "approval", Actions: 2}, {Reason: "not_before", Actions: 10, NextIn: new(259200.0)},
		},
		Buckets: []wire.OverviewBucket{
			{Name: "email.daily", Waiting: 120000, OldestDue: 5400, Limited: true, Permits: new(int64(0)), OpensIn: 52200},
			{Name: "tickets.api", Waiting: 3000, OldestDue: 12, Paused: true, Limited: true, InUse: new(int64(3)), Concurrency: new(int64(10))},
			{Name: "slack.minute", Waiting: 800, Limited: true, Permits: new(int64(17)), OpensIn: 9.5, ClosedBy: new("retry_after")},
			{Name: "a.bucket.whose.name.is.much.longer.than.any.screen.would.like.it.to.be", Waiting: 12},
			{Name: "default", Waiting: 3},
		},
		Breakers: []wire.OverviewBreaker{
			{Source: "crm", State: "open", Cause: "failures", OpenUntil: at.Add(25 * time.Second), Openings: 4},
			{Source: "mail", State: "half-open", Cause: "retry_after", OpenUntil: at.Add(-time.Second), Openings: 1},
			{Source: "chat", State: "closed", Cause: "failures"},
		},
		Pauses: []wire.OverviewPause{
			{Scope: "tool", Subject: "mail:send_email", Kill: true, Reason: "wrong template\x1b[2J", By: "Ana 田中", At: at.Add(-26 * time.Hour)},
			{Scope: "everything", Reason: "fire", By: "Bo", At: at.Add(-3 * time.Minute)},
		},
		Approvals:   wire.OverviewApprovals{Waiting: 2, OldestAt: new(at.Add(-time.Hour))},
		DeadLetters: []wire.OverviewDeadLetters{{Reason: "unknown", Count: 1}, {Reason: "refused", Count: 12}, {Reason: "exhausted", Count: 30}},
		Throughput: wire.OverviewThroughput{Covers: 300, Ended: []wire.OverviewEnded{
			{Tool: "mail:send_email", Status: "sent", LastMinute: 600, LastFiveMinutes: 2900},
			{Tool: "mail:send_email", Status: "conflict", LastMinute: 6, LastFiveMinutes: 7},
			{Tool: "mail:send_email", Status: "pending", LastMinute: 3, LastFiveMinutes: 9},
			{Tool: "crm:contact.update", Status: "failed", LastMinute: 1, LastFiveMinutes: 4},
			{Tool: "crm:contact.update", Status: "unknown", LastFiveMinutes: 1},
			{Tool: "notes:notes.create", Status: "sent", LastFiveMinutes: 2},
		}},
	}
}

// unstyled returns a line without its sequences for colours.
func unstyled(text string) string {
	return regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(text, "")
}

func TestTopLooks(t *testing.T) {
	t.Parallel()
	calm := wire.Overview{At: busy().At, Throughput: wire.OverviewThroughput{Covers: 300}}

	for name, tt := range map[string]struct {
		o              wire.Overview
		across, height int
		colour         bool
	}{
		"80x24":        {busy(), 80, 24, false},
		"80x24-colour": {busy(), 80, 24, true},
		"160x30":       {busy(), 160, 30, false},
		"page":         {busy(), 80, 0, false},
		"calm":         {calm, 80, 24, true},
		"40x10":        {busy(), 40, 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			lines := drawTop(tt.o, "http://127.0.0.1:8080", tt.across, tt.height, tt.colour)

			got := strings.Join(lines, "\n") + "\n"
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil { // a golden file
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("run go test ./internal/cli -run Top -update (-want +got):\n%s", diff)
			}
			if tt.height > 0 && len(lines) > tt.height {
				t.Errorf("%d lines, want at most %d", len(lines), tt.height)
			}
			for _, line := range lines {
				if n := columns(unstyled(line)); n > tt.across {
					t.Errorf("line of %d columns, want at most %d: %q", n, tt.across, line)
				}
				if !tt.colour && strings.Contains(line, "\x1b") {
					t.Errorf("line has an escape: %q", line)
				}
			}
		})
	}
}

func TestTopFitsAnyScreen(t *testing.T) {
	t.Parallel()

	for across := 20; across < 200; across += 7 {
		for height := 1; height < 60; height += 3 {
			lines := drawTop(busy(), "http://127.0.0.1:8080", across, height, true)
			if len(lines) > height {
				t.Errorf("%dx%d: %d lines", across, height, len(lines))
			}
			for _, line := range lines {
				if n := columns(unstyled(line)); n > across {
					t.Errorf("%dx%d: line of %d columns: %q", across, height, n, line)
				}
			}
		}
	}
}

func TestBrief(t *testing.T) {
	t.Parallel()

	for seconds, want := range map[float64]string{
		0: "0.0s", 0.04: "0.0s", 9.94: "9.9s", 10: "10s", 59.9: "59s", 60: "1m00s", 3599: "59m59s", 3600: "1h00m", 86399: "23h59m",
		86400: "1d00h", 8639999: "99d23h", 8640000: "100d",
	} {
		if got := brief(seconds); got != want {
			t.Errorf("brief(%v) = %q, want %q", seconds, got, want)
		}
	}
}

// TestFollowContinuesAfterFailures has a server that goes away and comes back.
func TestFollowContinuesAfterFailures(t *testing.T) {
	t.Parallel()
	away := &client.UnreachableError{URL: "there", Cause: errors.New("refused")}
	denied := &client.Problem{Problem: wire.Problem{Status: http.StatusForbidden}}
	for name, tt := range map[string]struct {
		answers []error
		once    bool
		shown   string
		want    error
	}{
		"the first must work":      {[]error{away}, false, "", away},
		"a later one may fail":     {[]error{nil, away, &client.Problem{Problem: wire.Problem{Status: 503}}, nil, denied}, false, "1 1! 1! 4 ", denied},
		"once is once":             {[]error{nil, denied}, true, "1 ", nil},
		"once and it does not":     {[]error{away}, true, "", away},
		"what stays wrong ends it": {[]error{nil, denied}, false, "1 ", denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			looks, shown := 0, ""

			err := follow(t.Context(), time.Millisecond, tt.once, func(context.Context) (wire.Overview, error) {
				looks++
				return wire.Overview{Due: int64(looks)}, tt.answers[looks-1]
			}, func(o wire.Overview, failure error) error {
				shown += fmt.Sprint(o.Due)
				if failure != nil {
					shown += "!"
				}
				shown += " "
				return nil
			})

			if !errors.Is(err, tt.want) || shown != tt.shown {
				t.Errorf("follow = %v and shows %q, want %v and %q", err, shown, tt.want, tt.shown)
			}
		})
	}
}

// overviewServer returns the URL of a server that only serves an overview.
func overviewServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"at":"2026-11-20T09:30:00Z","due":7,"waiting":[{"reason":"turn","envelopes":7}],"throughput":{"covers_seconds":300}}`))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// counted ends a context after so many writes.
type counted struct {
	bytes.Buffer

	most int
	end  func()
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Buffer.Write(p)
	if c.most--; c.most == 0 {
		c.end()
	}
	return n, err
}

func TestTopWhereNothingCanBeDrawn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		most int
		want int
	}{
		"a page after another":  {[]string{"--every", "100ms"}, 2, 2},
		"one page":              {[]string{"--once"}, 0, 1},
		"a line after another":  {[]string{"--json", "--every", "100ms"}, 3, 3},
		"one line, and no more": {[]string{"--json", "--once"}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, end := context.WithCancel(t.Context())
			defer end()
			out, errs := &counted{most: tt.most, end: end}, bytes.Buffer{}

			code := command.Execute(ctx, append(tt.args, "--url", overviewServer(t)), command.System{In: strings.NewReader("q"), Out: out, Err: &errs, Getenv: func(string) string { return "" }}, func(a *command.App) *cobra.Command { return Command(a) })

			got := strings.Count(out.String(), "WAITING FOR") + strings.Count(out.String(), `"waiting":[`)
			if code != command.ExitOK || got != tt.want || strings.Contains(out.String(), "\x1b") {
				t.Errorf("exit code %d, %d pages, want 0 and %d:\n%s%s", code, got, tt.want, out, errs.String())
			}
		})
	}
}

func TestTopRefusesHaste(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer

	code := command.Execute(t.Context(), []string{"--every", "1ms"}, command.System{Out: &out, Err: &errs, Getenv: func(string) string { return "" }}, func(a *command.App) *cobra.Command { return Command(a) })

	if code != command.ExitUsage || !strings.Contains(errs.String(), "--every must be at least 100ms") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
