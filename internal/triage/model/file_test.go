package model_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

const file = `
servers:
  study-pc: {dialect: ollama, url: "http://127.0.0.1:11434"}
  gpu:
    url: https://gpu.home.example:8080/v1
    networks: [192.168.1.20/32]
    slots: 4
  here: {url: unix:///run/llama.sock}
tiers:
  t1:  {server: here, model: qwen3-0.6b}
  t2a: {server: gpu, model: "qwen3-4b", context: 8192, pack: 4}
  t2b: {server: gpu, model: qwen3-4b, context: 8192}
dictation: {server: here, model: whisper-small}
`

func TestReadConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "models.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}

	got, err := model.ReadConfig(path)

	if err != nil {
		t.Fatal(err)
	}
	want := model.Config{
		Servers: map[string]model.ServerConfig{
			"study-pc": {Dialect: model.Ollama, URL: "http://127.0.0.1:11434"},
			"gpu":      {URL: "https://gpu.home.example:8080/v1", Networks: []netip.Prefix{netip.MustParsePrefix("192.168.1.20/32")}, Slots: 4},
			"here":     {URL: "unix:///run/llama.sock"},
		},
		Tiers: map[string]model.TierConfig{
			"t1":  {Server: "here", Model: "qwen3-0.6b"},
			"t2a": {Server: "gpu", Model: "qwen3-4b", Context: 8192, Pack: 4},
			"t2b": {Server: "gpu", Model: "qwen3-4b", Context: 8192},
		},
		Dictation: model.DictationConfig{Server: "here", Model: "whisper-small"},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
	set, err := model.Open(got, model.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	set.Close()
}

func TestParseNamesThePlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"servers:\n  a: {url: ftp://x}":                                                                                "line 2: servers.a.url: must be http://",
		"servers:\n  a: {url: 'http://me:secret@127.0.0.1'}":                                                           "line 2: servers.a.url: must be http://",
		"servers:\n  a: {}":                                                                                            "line 2: servers.a: url is required",
		"servers:\n  a:\n    url: http://localhost\n    urls: x":                                                       "line 4: servers.a.urls: unknown field; known fields: dialect, url, networks, slots",
		"servers:\n  a: {url: http://localhost, dialect: tgi}":                                                         "servers.a.dialect: must be one of auto, llama-server, ollama",
		"servers:\n  a: {url: http://localhost, slots: 0}":                                                             "servers.a.slots: must be a number from 1 to 256",
		"servers:\n  a: {url: http://x, networks: [8.8.8.8/32]}":                                                       "servers.a.networks[0]: is not a network of your own",
		"servers:\n  a: {url: http://x, networks: [0.0.0.0/0]}":                                                        "servers.a.networks[0]: is not a network of your own",
		"servers:\n  a: {url: http://x, networks: [10.1.1.1/8]}":                                                       "servers.a.networks[0]: must be a network",
		"servers:\n  a: {url: http://x, networks: 10.0.0.0/8}":                                                         "servers.a.networks: must be a list",
		"servers:\n  A: {url: http://x}":                                                                               "servers.A: the name must be",
		"servers: [a]":                                                                                                 "line 1: servers: must be a mapping",
		"servers:\n  a: {url: http://x}\ntiers:\n  t4: {server: a, model: m}":                                          "line 4: tiers.t4: unknown tier; known tiers: t1, t2a, t2b, t3",
		"servers:\n  a: {url: http://x}\ntiers:\n  t1: {server: b, model: m}":                                          "line 4: tiers.t1: server must be one of those under servers: a",
		"servers:\n  a: {url: http://x}\ntiers:\n  t1: {server: a}":                                                    "line 4: tiers.t1: model must be",
		"servers:\n  a: {url: http://x}\ntiers:\n  t1: {server: a, model: m, pack: 9}":                                 "tiers.t1.pack: must be a number from 1 to 8",
		"servers:\n  a: {url: http://x}\ntiers:\n  t1: {server: a, model: m, context: 4k}":                             "tiers.t1.context: must be a number from 512 to 1048576",
		"servers:\n  a: {url: http://x}\n  a: {url: http://y}":                                                         "is a duplicate",
		"servers:\n  a: {url: http://x}\ntiers: {t1: {server: a, model: m}, t3: {server: a, model: m, context: 9000}}": "t1 and t3 have the same model on the same server and must have the same context",
		"servers:\n\t- a":      "is not YAML",
		"tiers: {}\n---\na: b": "more than one document",
		"server: {}":           "line 1: server: unknown field",
		"":                     "is not YAML",
	} {
		_, err := model.Parse([]byte(text))

		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(file))
	f.Add([]byte(`{"servers": {"a": {"url": "http://[::1]:1"}}, "tiers": null}`))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := model.Parse(text)
		if err != nil {
			return
		}
		set, err := model.Open(c, model.Observer{})
		if err != nil {
			t.Fatalf("Parse() takes what Open() refuses: %v", err)
		}
		set.Close()
	})
}

func TestCalibrationsAreRelativeToTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"servers: {}": "", "calibrations: c.json": filepath.Join(dir, "c.json"), "calibrations: /etc/c.json": "/etc/c.json",
	} {
		path := filepath.Join(dir, "models.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := model.ReadConfig(path); err != nil || c.Calibrations != want {
			t.Errorf("ReadConfig() of %s = %+v, %v, want the calibrations %q", text, c, err, want)
		}
	}
}
