package client_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

func TestInvokeNamesTheToolInItsPath(t *testing.T) {
	t.Parallel()
	var path, body string
	c := serve(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		path, body = r.URL.EscapedPath(), string(text)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"execution_id":"019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b","status":"success","outputs":{"n":12345678901234567890}}`)
	})

	inv, err := c.Invoke(t.Context(), "mail:a/b c", wire.Call{Inputs: json.RawMessage(`{"n":1}`), ExternalID: "one", Wait: new(envelope.Duration(0))})

	if err != nil || inv.Status != wire.ExecutionSuccess || string(inv.Outputs) != `{"n":12345678901234567890}` {
		t.Errorf("Invoke = %+v, %v", inv, err)
	}
	if path != "/api/v1/tools/mail:a%2Fb%20c" || body != `{"inputs":{"n":1},"external_id":"one","wait":"0s"}` {
		t.Errorf("it asked %s with %s", path, body)
	}
}

func TestInvokeReturnsTheExecutionOfAFailure(t *testing.T) {
	t.Parallel()
	c := serve(t, client.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"type":"urn:countersign:problem:denied","title":"Not allowed","status":403,"instance":"r",
			"execution":{"execution_id":"019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b","status":"denied"}}`)
	})

	inv, err := c.Invoke(t.Context(), "mail:send", wire.Call{})

	if !errors.Is(err, client.ErrDenied) || inv.Status != wire.ExecutionDenied || inv.ID.String() != "019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b" {
		t.Errorf("Invoke = %+v, %v", inv, err)
	}
}
