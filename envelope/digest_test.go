package envelope_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

func digest(tb testing.TB, p envelope.Proposal) envelope.Digest {
	tb.Helper()
	d, err := p.Digest()
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// asked is a proposal with every field set.
func asked() envelope.Proposal {
	at := time.Date(2026, 7, 1, 8, 0, 0, 0, time.UTC)
	return envelope.Proposal{
		Version: 1, ActionID: envelope.NewActionID(), ExternalID: "x",
		TenantID:   envelope.TenantID(envelope.NewActionID()),
		EmployeeID: envelope.EmployeeID{15: 1},
		Type:       envelope.TypeExec,
		Tool:       envelope.Tool{Name: "chat.postMessage", Source: "slack", ComposioApp: "slack"},
		Args:       []byte(`{"a":1,"b":[]}`), Risk: envelope.RiskLow, Approval: envelope.ApprovalAuto,
		SessionID: "s", AutomationID: "a",
		Constraints: envelope.Constraints{RateBucket: "b", MustRunBefore: at.Add(time.Hour), NotBefore: at},
	}
}

func TestDigestCoversTheRequestedAction(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		covered bool
		change  func(p *envelope.Proposal)
	}{
		{"type", true, func(p *envelope.Proposal) { p.Type = "mcp.list" }},
		{"tool name", true, func(p *envelope.Proposal) { p.Tool.Name = "chat.delete" }},
		{"tool source", true, func(p *envelope.Proposal) { p.Tool.Source = "" }},
		{"tool app", true, func(p *envelope.Proposal) { p.Tool.ComposioApp = "teams" }},
		{"args", true, func(p *envelope.Proposal) { p.Args = []byte(`{"a":2,"b":[]}`) }},
		{"args past a float's precision", true, func(p *envelope.Proposal) { p.Args = []byte(`{"a":1.00000000000000000001,"b":[]}`) }},
		{"risk", true, func(p *envelope.Proposal) { p.Risk = "" }},
		{"approval", true, func(p *envelope.Proposal) { p.Approval = envelope.ApprovalRequired }},
		{"employee", true, func(p *envelope.Proposal) { p.EmployeeID[0] = 1 }},
		{"automation", true, func(p *envelope.Proposal) { p.AutomationID = "b" }},
		{"bucket", true, func(p *envelope.Proposal) { p.Constraints.RateBucket = "c" }},
		{"deadline", true, func(p *envelope.Proposal) { p.Constraints.MustRunBefore = time.Time{} }},
		{"earliest start", true, func(p *envelope.Proposal) {
			p.Constraints.NotBefore = p.Constraints.NotBefore.Add(time.Microsecond)
		}},
		{"all constraints", true, func(p *envelope.Proposal) { p.Constraints = envelope.Constraints{} }},
		{"action", false, func(p *envelope.Proposal) { p.ActionID = envelope.NewActionID() }},
		{"external id", false, func(p *envelope.Proposal) { p.ExternalID = "" }},
		{"tenant", false, func(p *envelope.Proposal) { p.TenantID = envelope.TenantID{} }},
		{"session", false, func(p *envelope.Proposal) { p.SessionID = "" }},
		{"version", false, func(p *envelope.Proposal) { p.Version = 0 }},
		{"spelling of args", false, func(p *envelope.Proposal) { p.Args = []byte(` {"b" : [ ], "\u0061":1.0} `) }},
		{"zone of a time", false, func(p *envelope.Proposal) {
			p.Constraints.NotBefore = p.Constraints.NotBefore.In(time.FixedZone("", 7200))
		}},
		{"less than a microsecond", false, func(p *envelope.Proposal) {
			p.Constraints.NotBefore = p.Constraints.NotBefore.Add(999)
		}},
	}
	original := asked()

	for _, tt := range tests {
		changed := original
		tt.change(&changed)
		if differs := digest(t, changed) != digest(t, original); differs != tt.covered {
			t.Errorf("%s: changed digest = %t, want %t", tt.name, differs, tt.covered)
		}
	}
}

func TestDigestIsStable(t *testing.T) {
	t.Parallel()
	p := asked()

	// Stored digests are compared for years: this one may never change.
	const want = "sha256:19fc1c06d8f334ee6821e0866546fba1a0376bd842a37a0313abccbf8c23b332"
	if got := digest(t, p).String(); got != want {
		t.Errorf("Digest() = %s, want %s", got, want)
	}
}

func TestDigestNeedsReadableArgs(t *testing.T) {
	t.Parallel()

	for args, want := range map[string]string{"": "/args syntax", `{"a":[1,1e999]}`: "/args/a/1 number"} {
		p := asked()
		p.Args = json.RawMessage(args)
		_, err := p.Digest()
		if got := problemsOf(t, err); len(got) != 1 || got[0] != want {
			t.Errorf("Digest() with args %q = %q, want %q", args, got, want)
		}
	}
}

func TestDigestIsTheSameAfterJSON(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		args := rapid.MapOf(rapid.StringMatching(`[a-zé<"]{0,4}`), value(2)).Draw(t, "args")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p := asked()
		p.Args = []byte(spell(random, args))
		want, err := p.Digest()
		if err != nil {
			t.Fatal(err)
		}

		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		back, err := envelope.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := back.Digest(); err != nil || got != want {
			t.Fatalf("Digest() after Parse = %s, %v, want %s", got, err, want)
		}
	})
}

func TestDigestText(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		want := envelope.DigestOf(rapid.SliceOf(rapid.Byte()).Draw(t, "canonical"))
		got, err := envelope.ParseDigest(want.String())
		if err != nil || got != want {
			t.Fatalf("ParseDigest(%s) = %s, %v", want, got, err)
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var back envelope.Digest
		if err := json.Unmarshal(text, &back); err != nil || back != want {
			t.Fatalf("digest through JSON = %s, %v, want %s", back, err, want)
		}
	})
}

func TestParseDigestRefuses(t *testing.T) {
	t.Parallel()
	good := envelope.DigestOf(nil).String()

	for _, text := range []string{
		"", "sha256:", good[:len(good)-1], good + "0", strings.ToUpper(good), good[len("sha256:"):],
		"sha256:" + strings.ToUpper(good[len("sha256:"):]), good[:len(good)-1] + "g", "sha512" + good[6:],
	} {
		var d envelope.Digest
		if err := d.UnmarshalText([]byte(text)); !errors.Is(err, fault.Invalid) {
			t.Errorf("UnmarshalText(%q) = %v, want fault.Invalid", text, err)
		}
	}
}
