package settings

import (
	"strings"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/source/webhook"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// subscriptionPrefix begins the ids of the automations under which
// subscriptions deliver. Nobody else can propose under it.
const subscriptionPrefix = "countersign.subscription."

// SubscriptionAutomation is the automation under which a subscription
// delivers.
func SubscriptionAutomation(id uuid.UUID) string { return subscriptionPrefix + id.String() }

// Delivery says which subscription an automation is, and false if it is none.
func Delivery(automation string) (uuid.UUID, bool) {
	text, ok := strings.CutPrefix(automation, subscriptionPrefix)
	if !ok {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}

// DeliveryTools are the tools that a subscription to a source of a kind
// delivers with; none for a kind that cannot deliver.
func DeliveryTools(kind string) []string {
	switch kind {
	case catalog.KindWebhook:
		return []string{webhook.ToolDeliver}
	case catalog.KindSlack:
		return []string{slack.ToolMessageSend, slack.ToolMessageUpdate, slack.ToolMessageEphemeral, slack.ToolViewOpen}
	}
	return nil
}

// rules are those of an automation. A subscription that is gone, or off, has
// none any more, and what it still had to deliver is denied.
func (s *Settings) rules(automation string) policy.Rules {
	rules, known := s.automations[automation]
	if !known && strings.HasPrefix(automation, subscriptionPrefix) {
		return s.automations[subscriptionPrefix]
	}
	return rules
}
