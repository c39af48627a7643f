package slack

import (
	_ "embed"

	"github.com/countersign-dev/countersign/internal/source/rest"
)

// The tools. Arguments and answers are those of Slack's own methods.
const (
	// ToolMessageSend is chat.postMessage.
	ToolMessageSend = "slack.message.send"
	// ToolMessageUpdate is chat.update.
	ToolMessageUpdate = "slack.message.update"
	// ToolMessageDelete is chat.delete.
	ToolMessageDelete = "slack.message.delete"
	// ToolMessageList is conversations.history.
	ToolMessageList = "slack.message.list"
	// ToolMessageEphemeral is chat.postEphemeral.
	ToolMessageEphemeral = "slack.message.ephemeral"
	// ToolViewOpen is views.open.
	ToolViewOpen = "slack.view.open"
	// ToolReactionAdd is reactions.add.
	ToolReactionAdd = "slack.reaction.add"
	// ToolReactionRemove is reactions.remove.
	ToolReactionRemove = "slack.reaction.remove"
	// ToolWebhookSend posts to the incoming webhook.
	ToolWebhookSend = "slack.webhook.send"
)

// document defines the tools.
//
//go:embed tools.json
var document []byte

// run returns the functions that call the tools for which there are
// credentials.
func (a *api) run() map[string]rest.Run {
	run := make(map[string]rest.Run)
	if !a.token.Empty() {
		run[ToolMessageSend] = a.send
		run[ToolMessageUpdate] = a.write("chat.update")
		run[ToolMessageDelete] = a.write("chat.delete", "message_not_found")
		run[ToolMessageList] = rest.WithArgs(a.list)
		run[ToolMessageEphemeral] = a.write("chat.postEphemeral")
		run[ToolViewOpen] = a.write("views.open", "exchanged_trigger_id")
		run[ToolReactionAdd] = a.write("reactions.add", "already_reacted")
		run[ToolReactionRemove] = a.write("reactions.remove", "no_reaction")
	}
	if !a.webhook.Empty() {
		run[ToolWebhookSend] = a.post
	}
	return run
}
