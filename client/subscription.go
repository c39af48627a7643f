package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

const subscriptionsPath = "/api/v1/subscriptions"

// Subscription is somebody outside who is told of events.
type Subscription struct {
	// ID names the automation countersign.subscription.<id> under which its
	// messages go out.
	ID     string `json:"subscription_id"`
	Name   string `json:"name"`
	Source string `json:"source"`
	// Kinds are the names of the events that it hears of.
	Kinds []string `json:"kinds"`
	// Tool is a pattern of the tools that it hears of, MinRisk the lowest risk.
	Tool             string        `json:"tool"`
	MinRisk          envelope.Risk `json:"min_risk"`
	Channel          string        `json:"channel,omitzero"`
	Link             string        `json:"link,omitzero"`
	RateBucket       string        `json:"rate_bucket,omitzero"`
	HasSigningSecret bool          `json:"has_signing_secret"`
	// Interactions is the path that the Slack app's interactivity request URL
	// ends in.
	Interactions string `json:"interactions,omitzero"`
	Enabled      bool   `json:"enabled"`
	// DisabledReason says why it was switched off by itself.
	DisabledReason string `json:"disabled_reason,omitzero"`
	// Behind is how many events it has not been told of yet, up to 10,000.
	Behind    int       `json:"behind"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	UpdatedBy string    `json:"updated_by"`
}

// SubscriptionInput is what a subscription is made of. What is left out has
// its usual value, save the secret, which stays.
type SubscriptionInput struct {
	Source        string        `json:"source"`
	Kinds         []string      `json:"kinds,omitempty"`
	Tool          string        `json:"tool,omitzero"`
	MinRisk       envelope.Risk `json:"min_risk,omitzero"`
	Channel       string        `json:"channel,omitzero"`
	Link          string        `json:"link,omitzero"`
	RateBucket    string        `json:"rate_bucket,omitzero"`
	SigningSecret string        `json:"signing_secret,omitzero"`
	Enabled       *bool         `json:"enabled,omitempty"`
	// FromNow leaves out what happened while it was off.
	FromNow bool `json:"from_now,omitzero"`
}

// Subscriptions lists who outside is told of events.
func (c *Client) Subscriptions(ctx context.Context) ([]Subscription, error) {
	var out Page[Subscription]
	_, err := c.do(ctx, request{method: http.MethodGet, path: subscriptionsPath}, &out)
	return out.Items, err
}

// PutSubscription makes a subscription, or changes one.
func (c *Client) PutSubscription(ctx context.Context, name string, in SubscriptionInput) (Subscription, error) {
	var out Subscription
	_, err := c.do(ctx, request{method: http.MethodPut, path: subscriptionPath(name), in: in}, &out)
	return out, err
}

// DeleteSubscription removes a subscription.
func (c *Client) DeleteSubscription(ctx context.Context, name string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: subscriptionPath(name)}, nil)
	return err
}

// TestSubscription sends a message that only shows that messages arrive, and
// returns the action that sends it, after its end or after wait.
func (c *Client) TestSubscription(ctx context.Context, name string, wait time.Duration) (Action, error) {
	rq := request{method: http.MethodPost, path: subscriptionPath(name) + "/test"}
	rq.waiting("wait", wait)
	var a Action
	_, err := c.do(ctx, rq, &a)
	return a, err
}

func subscriptionPath(name string) string { return subscriptionsPath + "/" + url.PathEscape(name) }
