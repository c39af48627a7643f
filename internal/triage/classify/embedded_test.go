package classify_test

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/classify"
)

func TestEmbedded(t *testing.T) {
	t.Parallel()

	m, err := classify.Embedded()
	if err != nil {
		t.Fatal(err)
	}

	file, err := os.Stat("model.bin")
	if err != nil || file.Size() > 1_500_000 {
		t.Errorf("model.bin has %d bytes, %v, want at most 1.5 MB", file.Size(), err)
	}
	sheet, err := os.ReadFile("model.md")
	if err != nil || !strings.Contains(string(sheet), m.Digest()) {
		t.Errorf("model.md does not name the digest %s: %v", m.Digest(), err)
	}
	got := m.Predict(features(m, "From: Ann Berg <ann@north.example>\nTo: o@north.example\nSubject: Gateway down\n\n"+
		"Production is down for all customers since nine. Can you restart the gateway right now? We are losing orders.\n"))
	if !got.NeedsAttention || !got.Urgent || got.Request < 0.5 {
		t.Errorf("an outage is %+v", got)
	}
	got = m.Predict(features(m, "From: Deals <offers@shop.example>\nTo: o@north.example\nSubject: 50% OFF everything - ends tonight!!!\n\n"+
		"Buy now and save $100! Limited time offer. Click here to claim your free gift. Unsubscribe.\n"))
	if got.Priority != classify.Promotional || got.Unwanted < 0.3 {
		t.Errorf("an advertisement is %+v", got)
	}
}
