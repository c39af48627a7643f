package source_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/countersign-dev/countersign/internal/source"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestWriteWatch(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(up.Close)
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(cut.Close)
	down := httptest.NewServer(nil)
	down.Close()
	blind := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("no") })
	for name, test := range map[string]struct {
		url       string
		transport http.RoundTripper
		want      bool
	}{
		"answered":                       {up.URL, http.DefaultTransport, true},
		"cut":                            {cut.URL, http.DefaultTransport, true},
		"refused":                        {down.URL, http.DefaultTransport, false},
		"transport that does not say so": {up.URL, blind, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, watch := source.WatchWrite(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, test.url, nil)
			if err != nil {
				t.Fatal(err)
			}

			resp, err := test.transport.RoundTrip(req)
			if err == nil {
				err = resp.Body.Close()
			}

			if got := watch.Written(); got != test.want {
				t.Errorf("Written() = %t after %v, want %t", got, err, test.want)
			}
		})
	}
}

func TestWriteWatchOfCanceledRequest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	entered := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}))
	t.Cleanup(srv.Close)
	ctx, watch := source.WatchWrite(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() { <-entered; cancel() }()

	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatal("RoundTrip() = nil, want an error")
	}

	if !watch.Written() {
		t.Error("Written() = false, want true")
	}
}
