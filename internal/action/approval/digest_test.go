package approval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func TestADigestReadsBack(t *testing.T) {
	t.Parallel()
	want := approval.Digest{Args: envelope.DigestOf([]byte(`{}`)), Decision: uuid.New(), Needed: 3, Generation: uuid.New(), ToolDigest: []byte{2, 1, 4}}

	got, ok := approval.ParseDigest(want.Bytes())

	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("ParseDigest(Bytes) = %t (-want +got):\n%s", ok, diff)
	}
}

func FuzzParseDigest(f *testing.F) {
	f.Add(approval.Digest{Decision: uuid.New(), Needed: 1, ToolDigest: []byte{1}}.Bytes())
	f.Add([]byte{})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, ok := approval.ParseDigest(raw)
		if ok && !bytes.Equal(s.Bytes(), raw) {
			t.Errorf("a digest reads back as another: %x, want %x", s.Bytes(), raw)
		}
	})
}

// TestDigestCoversItsInputs changes one thing at a time.
func TestDigestCoversItsInputs(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	bind := func(change func(p *settings.Proposal)) approval.Digest {
		t.Helper()
		p := settings.Proposal{Args: json.RawMessage(`{"to":"a@example.org","n":1.50}`), Risk: envelope.RiskMedium, Session: "s1", Now: time.Now()}
		change(&p)
		var digest approval.Digest
		o.as(func(ctx context.Context, tx pgx.Tx) error {
			snap, err := settings.NewCache().Current(ctx, tx, o.tenant)
			if err != nil {
				return err
			}
			tool, _ := snap.Tool(policy.Key{Source: "src", Action: "act"})
			digest, _, err = approval.ComputeDigest(&decision.Action{Settings: snap, Tool: tool, Proposal: p})
			return err
		})
		return digest
	}
	nothing := func(*settings.Proposal) {}
	first := bind(nothing)

	for name, change := range map[string]func(p *settings.Proposal){
		"the order of keys":       func(p *settings.Proposal) { p.Args = json.RawMessage(`{"n":1.5,"to":"a@example.org"}`) },
		"that the agent asked":    func(p *settings.Proposal) { p.AskedApproval = true },
		"a do-not-contact match":  func(p *settings.Proposal) { p.Listed = true },
		"the proposer's patterns": func(p *settings.Proposal) { p.Tools = []string{"src:*"} },
	} {
		if got := bind(change); !bytes.Equal(got.Bytes(), first.Bytes()) {
			t.Errorf("another digest for %s", name)
		}
	}
	if got := bind(func(p *settings.Proposal) { p.Args = json.RawMessage(`{"to":"a@example.org","n":1.51}`) }); got.Args == first.Args {
		t.Error("the same digest for other arguments")
	}
	o.mode(envelope.ModeRequireApproval) // the same mode, set again
	if got := bind(nothing); got.Decision == first.Decision {
		t.Error("the same digest after a rule was set anew")
	}
	o.as(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutListing(ctx, tx, o.tenant, "src", listing("changed"))
	})
	if got := bind(nothing); bytes.Equal(got.ToolDigest, first.ToolDigest) {
		t.Error("the same digest for another definition")
	}
	o.review(2)
	if got := bind(nothing); got.Needed != 2 {
		t.Errorf("it needs %d, want 2", got.Needed)
	}
}

// TestETagCoversShownFields: the inbox and the envelope itself name the same.
func TestETagCoversShownFields(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.accept(message(typo)).Action
	v := o.view(id)

	inbox, err := o.service.Inbox(t.Context(), o.decider("ada"), approval.InboxQuery{Most: 10})
	if err != nil || len(inbox) != 1 || inbox[0].ETag != approval.ETag(v) {
		t.Errorf("Inbox = %+v, %v, want the seen of the view, %s", inbox, err, approval.ETag(v))
	}
	seen := map[string]bool{approval.ETag(v): true}
	for name, change := range map[string]func(v *outbox.View){
		"arguments":  func(v *outbox.View) { v.Envelope.Args = json.RawMessage(`{}`) },
		"definition": func(v *outbox.View) { v.ToolDigest = []byte{1} },
		"decision":   func(v *outbox.View) { v.DecisionID = uuid.New() },
		"round":      func(v *outbox.View) { v.Review.Round++ },
	} {
		other := v
		change(&other)
		if seen[approval.ETag(other)] {
			t.Errorf("another %s is seen as the same", name)
		}
		seen[approval.ETag(other)] = true
	}
	if _, err := o.service.Approve(t.Context(), o.person("ada"), id, approval.Approval{IfMatch: inbox[0].ETag}); err != nil {
		t.Errorf("Approve what was seen = %v", err)
	}
}
