package webhook_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/webhook"
)

// received is a request in the format of the verifying program.
type received struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// verify verifies requests with the npm library of Standard Webhooks.
func verify(t *testing.T, all ...received) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat(filepath.Join("testdata", "npm", "node_modules")); err != nil {
		t.Skip("testdata/npm/node_modules is missing: run make npm")
	}
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "npm", "verify.mjs"))
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("verify.mjs = %v", err)
	}
	return strings.Fields(string(out))
}

func TestSignaturesVerifyWithTheReferenceLibrary(t *testing.T) {
	t.Parallel()
	var got received
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		got = received{Headers: map[string]string{}, Body: string(body)}
		for _, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			got.Headers[name] = r.Header.Get(name)
		}
	}))
	t.Cleanup(s.Close)
	src := open(t, webhook.Config{URL: s.URL, Networks: loopback(), Secrets: secrets(current, previous)})
	if out := deliver(t, src, "4c8a6a0e", "grüße \\u0000"); out.Kind != source.KindDone {
		t.Fatalf("Execute() = %+v", out)
	}
	with := func(secret string, change func(*received)) received {
		r := received{Secret: secret, Headers: map[string]string{}, Body: got.Body}
		maps.Copy(r.Headers, got.Headers)
		if change != nil {
			change(&r)
		}
		return r
	}

	results := verify(t,
		with(current, nil), with(previous, nil),
		with("whsec_"+strings.Repeat("QUFB", 10), nil),
		with(current, func(r *received) { r.Body += " " }),
		with(current, func(r *received) { r.Headers["webhook-id"] = "another" }),
		with(current, func(r *received) { r.Headers["webhook-timestamp"] = "1700000000" }),
	)

	if want := "true true false false false false"; strings.Join(results, " ") != want {
		t.Errorf("signatures are taken as %v, want %s", results, want)
	}
	if got.Headers["webhook-id"] != "4c8a6a0e" {
		t.Errorf("webhook-id = %q, want the call's key", got.Headers["webhook-id"])
	}
}
