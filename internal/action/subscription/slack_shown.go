package subscription

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

// messageOf returns the channel and ts of a delivery's message, and false if it
// has not been sent.
func messageOf(delivery *outbox.View) (channel, ts string, out bool) {
	r := delivery.Envelope.Result
	if r.ProviderID == nil || r.Status != envelope.StatusSent && r.Status != envelope.StatusConflict {
		return "", "", false
	}
	return strings.Cut(*r.ProviderID, "/")
}

// current reports whether a message, as it was sent, shows the current version of
// an action.
func current(delivery, about *outbox.View) bool {
	return about.Review.Given == 0 && bytes.Contains(delivery.Envelope.Args, []byte(approval.ETag(*about)))
}

// stateOf returns the version of a pending action that a message shows.
func stateOf(about *outbox.View) string {
	return approval.ETag(*about) + "." + strconv.Itoa(about.Review.Given)
}

// HasMessage reports whether one of some deliveries sent the message of an
// interaction. A button in any other message is not Countersign's.
func HasMessage(deliveries []outbox.View, in Interaction) bool {
	for i := range deliveries {
		if channel, ts, out := messageOf(&deliveries[i]); out && channel == in.Channel && ts == in.TS {
			return true
		}
	}
	return false
}
