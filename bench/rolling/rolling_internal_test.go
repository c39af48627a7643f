package main

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCompare has an action for everything that can be wrong.
func TestCompare(t *testing.T) {
	t.Parallel()
	once, keyed, long := proposed{toolOnce, shortest}, proposed{toolKeyed, shortest}, proposed{toolOnce, longCall}
	l := &load{requests: 12, refused: []string{"EOF"}, accepted: map[int]proposed{}}
	counted := &tool{effects: map[int]int{}}
	stored := map[string]end{}
	for n, row := range []struct {
		of      proposed
		end     end
		effects int
	}{
		{once, end{"sent", 1}, 1}, {keyed, end{"sent", 1}, 1}, {long, end{"unknown", 1}, 1}, {long, end{"unknown", 1}, 0}, // in order
		{once, end{"unknown", 1}, 1}, {keyed, end{"unknown", 1}, 1}, // short
		{once, end{"sent", 1}, 0}, {once, end{"", 0}, 1}, {once, end{"failed", 1}, 1}, // lost
		{once, end{"sent", 1}, 2}, {once, end{"sent", 2}, 1}, // doubled
	} {
		l.accepted[n], counted.effects[n], stored[externalID(n)] = row.of, row.effects, row.end
	}
	took := map[string]time.Duration{"api": time.Second}

	got := compare(l, counted, stored, took)

	want := result{Requests: 12, Refused: 1, Sent: 5, Unknown: 4, ShortUnknown: 2, Lost: 3, Doubled: 2, Took: took}
	examples := got.Examples
	got.Examples = nil
	if diff := cmp.Diff(want, got); diff != "" || len(examples) < mostExamples {
		t.Errorf("%d examples, compare (-want +got):\n%s", len(examples), diff)
	}
}

func TestConclusion(t *testing.T) {
	t.Parallel()
	clean := result{Requests: 100, Sent: 98, Unknown: 2}

	for name, test := range map[string]struct {
		change func(*result)
		want   string
	}{
		"clean":         {func(*result) {}, held},
		"refused":       {func(r *result) { r.Refused = 1 }, "BROKEN: 1 refused"},
		"lost":          {func(r *result) { r.Lost = 1 }, "BROKEN: 1 lost"},
		"doubled":       {func(r *result) { r.Doubled = 1 }, "BROKEN: 1 doubled"},
		"short unknown": {func(r *result) { r.ShortUnknown = 1 }, "BROKEN: 1 unknown though short"},
		"none cut off":  {func(r *result) { r.Unknown = 0 }, "BROKEN: no long call"},
	} {
		r := clean
		test.change(&r)
		if got := (scenario{}).conclusion(r); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: conclusion = %q, want %q", name, got, test.want)
		}
	}
	for _, s := range scenarios() {
		if s.broken != nil && s.conclusion(clean) == broke {
			t.Errorf("%s: passes with a run in which nothing broke", s.name)
		}
	}
}

// TestBalancer has a process that answers, and one that does not.
func TestBalancer(t *testing.T) {
	t.Parallel()
	to, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the listener
		for {
			conn, err := to.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("here"))
			_ = conn.Close()
		}
	}()
	b, err := newBalancer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	ask := func() string {
		conn, err := net.Dial("tcp", b.address())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		text, _ := io.ReadAll(conn) // a refused connection is reset, or ends
		return string(text)
	}

	b.add(to.Addr().String())
	if got := ask(); got != "here" {
		t.Errorf("with a process: %q, want its answer", got)
	}
	b.remove(to.Addr().String())
	if got := ask(); got != "" {
		t.Errorf("without a process: %q, want nothing", got)
	}
	_ = to.Close()
	b.add(to.Addr().String())
	if got := ask(); got != "" {
		t.Errorf("with a process that ended: %q, want nothing", got)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-help"}, 0, "-rootfs"}, {[]string{"now"}, 2, ""}, {[]string{"-nothing"}, 2, "-nothing"},
	} {
		var errs bytes.Buffer
		if code := run(t.Context(), test.args, io.Discard, &errs); code != test.code || !strings.Contains(errs.String(), test.want) {
			t.Errorf("run(%q) = %d with %q, want %d and %q", test.args, code, errs.String(), test.code, test.want)
		}
	}
}
