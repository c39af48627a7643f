package subscription

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

// messageOf returns where a delivery's message stands, and false while it does
// not.
func messageOf(delivery *outbox.View) (channel, ts string, out bool) {
	r := delivery.Envelope.Result
	if r.ProviderID == nil || r.Status != envelope.StatusSent && r.Status != envelope.StatusConflict {
		return "", "", false
	}
	return strings.Cut(*r.ProviderID, "/")
}

// current says that a message shows an envelope as it is, as it was sent.
func current(delivery, about *outbox.View) bool {
	return about.Review.Given == 0 && bytes.Contains(delivery.Envelope.Args, []byte(approval.ETag(*about)))
}

// stateOf names what a message shows of an envelope that waits.
func stateOf(about *outbox.View) string {
	return approval.ETag(*about) + "." + strconv.Itoa(about.Review.Given)
}

// Shows says whether one of some deliveries is the message that a button was
// pressed in. A button anywhere else was put there by somebody else.
func HasMessage(deliveries []outbox.View, in Interaction) bool {
	for i := range deliveries {
		if channel, ts, out := messageOf(&deliveries[i]); out && channel == in.Channel && ts == in.TS {
			return true
		}
	}
	return false
}
