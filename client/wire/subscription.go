package wire

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Subscription delivers events to a webhook or a Slack channel.
type Subscription struct {
	// ID names the automation countersign.subscription.<id> under which its
	// messages go out.
	ID     string `json:"subscription_id"`
	Name   string `json:"name"`
	Source string `json:"source"`
	// Kinds are the names of the events to deliver.
	Kinds []string `json:"kinds"`
	// Tool is a pattern of the tools, MinRisk the lowest risk, to deliver.
	Tool             string        `json:"tool"`
	MinRisk          envelope.Risk `json:"min_risk"`
	Channel          string        `json:"channel,omitzero"`
	Link             string        `json:"link,omitzero"`
	RateBucket       string        `json:"rate_bucket,omitzero"`
	HasSigningSecret bool          `json:"has_signing_secret"`
	// ShowMail reports whether messages about actions of triage show sender and
	// subject of the mail.
	ShowMail bool `json:"show_mail"`
	// Interactions is the path that the Slack app's interactivity request URL
	// ends in.
	Interactions string `json:"interactions,omitzero"`
	Enabled      bool   `json:"enabled"`
	// DisabledReason is the server's reason for disabling the subscription.
	DisabledReason string `json:"disabled_reason,omitzero"`
	// Behind counts events that are not delivered yet, up to 10,000.
	Behind    int            `json:"behind"`
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
	UpdatedBy envelope.Actor `json:"updated_by"`
	ETag      string         `json:"etag"`
}

// SubscriptionInput is a subscription to store. Fields left out have their
// default, except the secret, which is kept.
type SubscriptionInput struct {
	Source        string        `json:"source"`
	Kinds         []string      `json:"kinds,omitempty"`
	Tool          string        `json:"tool,omitzero"`
	MinRisk       envelope.Risk `json:"min_risk,omitzero"`
	Channel       string        `json:"channel,omitzero"`
	Link          string        `json:"link,omitzero"`
	RateBucket    string        `json:"rate_bucket,omitzero"`
	SigningSecret string        `json:"signing_secret,omitzero"`
	// ShowMail takes the scope mail:read.
	ShowMail bool  `json:"show_mail,omitzero"`
	Enabled  *bool `json:"enabled,omitempty"`
	// FromNow leaves out the events of the time in which the subscription was
	// disabled.
	FromNow bool `json:"from_now,omitzero"`
}

// ResendRequest has the message of a delivery sent again.
type ResendRequest struct {
	// Note is the reason, for the record.
	Note string `json:"note,omitzero"`
}
