package rest

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/coalesce"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// maxShared is how many equal requests share an answer at most.
const maxShared = 256

// shareKey identifies equal requests of a caller.
type shareKey struct {
	operation, query, encoding string
	token                      identity.TokenID
	browser                    uuid.UUID
}

// sharedRead is a request whose answer equal requests share.
type sharedRead struct {
	call   *request.Call
	handle request.Handler
	answer *storedAnswer
}

// sharedReads answers equal requests of a caller that wait at the same time from one
// run of their handler, which begins after all of them. An answer is so as recent as
// one of a run of its own.
type sharedReads struct {
	group *coalesce.Group[shareKey, *sharedRead]
}

func newSharedReads() sharedReads {
	return sharedReads{coalesce.New(maxShared, func(ctx context.Context, _ shareKey, reads []*sharedRead) (undone bool, err error) {
		for i, r := range reads {
			// The rights of a token may change between two requests.
			same := slices.IndexFunc(reads[:i], func(other *sharedRead) bool { return other.call.By.Equal(r.call.By) })
			if same >= 0 {
				r.answer = reads[same].answer
			} else if r.answer, err = r.run(ctx); err != nil {
				return true, err
			}
		}
		return false, nil
	})}
}

// serve answers a request of an operation.
func (s sharedReads) serve(c *request.Call, operation string, handle request.Handler) error {
	key := shareKey{operation, c.R.URL.RawQuery, strings.Join(c.R.Header.Values("Accept-Encoding"), ","), c.By.Token, c.By.Browser.ID}
	r := &sharedRead{call: c, handle: handle}
	if err := s.group.Do(c.R.Context(), key, r); err != nil {
		return err
	}
	r.answer.writeTo(c.W)
	return nil
}

// run runs the handler and returns its answer.
func (r *sharedRead) run(ctx context.Context) (*storedAnswer, error) {
	a := &storedAnswer{header: make(http.Header)}
	c := *r.call
	c.R, c.W = c.R.WithContext(ctx), a
	return a, r.handle(&c)
}

// storedAnswer is an answer in memory.
type storedAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers that the handler sets.
func (a *storedAnswer) Header() http.Header { return a.header }

// WriteHeader stores the status.
func (a *storedAnswer) WriteHeader(status int) { a.status = status }

// Write stores a part of the body.
func (a *storedAnswer) Write(p []byte) (int, error) { return a.body.Write(p) }

// writeTo ignores the error, which means that the caller has left.
func (a *storedAnswer) writeTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes())
}
