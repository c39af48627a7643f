package model_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// realEngine starts a server around llama.cpp's engine and returns its address.
// It skips the test if the engine is not installed.
func realEngine(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if _, err := os.Stat(filepath.Join("testdata", "npm", "node_modules", "@node-llama-cpp", "linux-x64")); err != nil {
		t.Skip("testdata/npm/node_modules is missing: run make npm on Linux with an x86-64 processor")
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "npm", "engine.mjs"), filepath.Join("testdata", "triage-t1-1m.gguf"), "triage-t1", "1024", "2")
	var errs strings.Builder
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // which makes it exit
		_ = cmd.Wait() // unless the test's context has ended it
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var line struct{ URL string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.URL != "" {
			return line.URL
		}
	}
	_ = cmd.Wait() // so that its output is complete
	t.Fatalf("the engine does not start: %s", errs.String())
	return ""
}

// TestRealEngine checks the client against a real language model with a grammar
// that llama.cpp applies.
func TestRealEngine(t *testing.T) {
	t.Parallel()
	address := realEngine(t)
	set, err := model.Open(model.Config{
		Servers: map[string]model.ServerConfig{"engine": {URL: address, Slots: 2}},
		Tiers:   map[string]model.TierConfig{"t1": {Server: "engine", Model: "triage-t1"}},
	}, model.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	tier, _ := set.Tier("t1")
	modeltest.Conform(t, tier)
	if r := set.Reports(t.Context())[0]; !r.Usable || r.Overflow != model.OverflowRefused || r.Accepted < 512 || r.HundredMS <= 0 {
		t.Errorf("Reports() = %+v, want a model that may be asked", r)
	}

	a, err := tier.Ask(t.Context(), model.Question{
		User: "From: a <b.com>\nSubject: [ILUG] kernel\nhas anyone tried the new kernel patch on debian?", MaxTokens: 40,
		Schema: json.RawMessage(`{"type":"object","properties":{"show":{"enum":["yes","no"]},"kind":{"enum":["bulk","list","direct"]}},"required":["show","kind"],"additionalProperties":false}`),
	})

	var got struct{ Show, Kind string }
	if err != nil || json.Unmarshal(a.Text, &got) != nil || got.Show != "yes" || got.Kind != "list" {
		t.Errorf("Ask() about a message of a mailing list = %s, %v, want show yes and kind list, as llama-server and Ollama answered", a.Text, err)
	}
}
