package rest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/server/rest/route"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

var tokenA, tokenB = identity.TokenID(uuid.UUID{1}), identity.TokenID(uuid.UUID{2})

// reader makes requests of a handler that answers with the number of its run and
// waits for next.
type reader struct {
	t     *testing.T
	reads sharedReads
	runs  atomic.Int64
	next  chan struct{}
	err   error
}

func (r *reader) handle(c *request.Call) error {
	n := r.runs.Add(1)
	select {
	case <-r.next:
	case <-c.R.Context().Done():
		return c.R.Context().Err()
	}
	if r.err != nil {
		return r.err
	}
	c.W.Header().Set("Content-Type", "text/plain")
	c.Write(http.StatusOK, "text/plain", fmt.Appendf(nil, "run %d for %s", n, c.By.Role))
	return nil
}

// request starts a request, and returns its answer once it is there.
func (r *reader) request(by identity.Principal, query, encoding string) <-chan string {
	answer := make(chan string, 1)
	go func() {
		w, q := httptest.NewRecorder(), httptest.NewRequestWithContext(r.t.Context(), http.MethodGet, "/?"+query, nil)
		q.Header.Set("Accept-Encoding", encoding)
		err := r.reads.serve(&request.Call{W: w, R: q, By: by}, "list", r.handle)
		if err != nil {
			answer <- err.Error()
			return
		}
		answer <- fmt.Sprintf("%d %s %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}()
	synctest.Wait()
	return answer
}

// TestEqualRequestsShareAnAnswerThatBeginsAfterThem holds that a request is never
// answered by a run that began before it, nor by one for another caller.
func TestEqualRequestsShareAnAnswerThatBeginsAfterThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &reader{t: t, reads: newSharedReads(), next: make(chan struct{})}
		viewer := identity.Principal{Token: tokenA, Role: identity.RoleViewer}
		narrowed := viewer
		narrowed.Role = identity.RoleAgent

		first := r.request(viewer, "limit=50", "gzip")
		second, third := r.request(viewer, "limit=50", "gzip"), r.request(viewer, "limit=50", "gzip")
		changed := r.request(narrowed, "limit=50", "gzip")
		others := []<-chan string{r.request(identity.Principal{Token: tokenB}, "limit=50", "gzip"), r.request(viewer, "limit=51", "gzip"), r.request(viewer, "limit=50", "")}
		if n := r.runs.Load(); n != 4 {
			t.Fatalf("%d runs before an answer, want one for the first request of each key", n)
		}
		close(r.next)

		if got := <-first; got != "200 text/plain run 1 for viewer" {
			t.Errorf("the first request: %s", got)
		}
		a, b := <-second, <-third
		if a != b || a == "200 text/plain run 1 for viewer" {
			t.Errorf("the requests that waited: %s and %s, want one run after the first", a, b)
		}
		if got := <-changed; got == a || got[len(got)-5:] != "agent" {
			t.Errorf("the request with other rights: %s", got)
		}
		for _, other := range others {
			<-other
		}
		if n := r.runs.Load(); n != 6 {
			t.Errorf("%d runs, want 6", n)
		}
	})
}

func TestARequestThatSharesGetsTheError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &reader{t: t, reads: newSharedReads(), next: make(chan struct{}), err: errors.New("no database")}
		by := identity.Principal{Token: tokenA}
		all := []<-chan string{r.request(by, "", ""), r.request(by, "", ""), r.request(by, "", "")}

		close(r.next)

		for _, one := range all {
			if got := <-one; got != "no database" {
				t.Errorf("answer = %s, want the error", got)
			}
		}
	})
}

// TestOnlyReadsAreShared holds that no request is shared that changes something, has
// a body or an action in its path.
func TestOnlyReadsAreShared(t *testing.T) {
	t.Parallel()
	n := 0
	for _, rt := range route.Table() {
		if !route.IsShared(rt.Operation) {
			continue
		}
		n++
		if !strings.HasPrefix(rt.Pattern, "GET ") || strings.Contains(rt.Pattern, "{") || rt.MaxBody != 0 || rt.Wait != 0 || rt.Endless || rt.Roles == nil {
			t.Errorf("%s is shared", rt.Pattern)
		}
	}
	if n == 0 {
		t.Error("no operation is shared")
	}
}
