package slack

import (
	_ "embed"

	"github.com/countersign-dev/countersign/internal/source/rest"
)

// The tools. Arguments and answers are those of Slack's methods.
const (
	// ToolMessageSend calls chat.postMessage.
	ToolMessageSend = "slack.message.send"
	// ToolMessageUpdate calls chat.update.
	ToolMessageUpdate = "slack.message.update"
	// ToolMessageDelete calls chat.delete.
	ToolMessageDelete = "slack.message.delete"
	// ToolMessageList calls conversations.history.
	ToolMessageList = "slack.message.list"
	// ToolMessageEphemeral calls chat.postEphemeral.
	ToolMessageEphemeral = "slack.message.ephemeral"
	// ToolViewOpen calls views.open.
	ToolViewOpen = "slack.view.open"
	// ToolReactionAdd calls reactions.add.
	ToolReactionAdd = "slack.reaction.add"
	// ToolReactionRemove calls reactions.remove.
	ToolReactionRemove = "slack.reaction.remove"
	// ToolWebhookSend posts to the incoming webhook.
	ToolWebhookSend = "slack.webhook.send"
)

// document defines the tools.
//
//go:embed tools.json
var document []byte

// run returns the functions of the tools with credentials.
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
