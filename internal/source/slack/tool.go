package slack

import (
	"github.com/countersign-dev/countersign/envelope"
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
	// ToolMessageWhisper is chat.postEphemeral.
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

const (
	schemaSend = `{"type":"object","properties":{
		"channel":{"type":"string","minLength":1,"description":"The channel's or the user's id."},
		"text":{"type":"string","minLength":1,"maxLength":40000,"description":"The message, and what notifications show of one with blocks."},
		"blocks":{"type":"array","minItems":1,"maxItems":50,"items":{"type":"object"}},
		"thread_ts":{"type":"string","description":"The ts of the message to answer in a thread."},
		"reply_broadcast":{"type":"boolean"},
		"mrkdwn":{"type":"boolean"},
		"unfurl_links":{"type":"boolean"},
		"unfurl_media":{"type":"boolean"}
	},"required":["channel"],"anyOf":[{"required":["text"]},{"required":["blocks"]}],"additionalProperties":false}`

	schemaUpdate = `{"type":"object","properties":{
		"channel":{"type":"string","minLength":1},
		"ts":{"type":"string","minLength":1,"description":"The message's ts."},
		"text":{"type":"string","minLength":1,"maxLength":40000},
		"blocks":{"type":"array","maxItems":50,"items":{"type":"object"}}
	},"required":["channel","ts"],"anyOf":[{"required":["text"]},{"required":["blocks"]}],"additionalProperties":false}`

	schemaDelete = `{"type":"object","properties":{
		"channel":{"type":"string","minLength":1},
		"ts":{"type":"string","minLength":1,"description":"The message's ts."}
	},"required":["channel","ts"],"additionalProperties":false}`

	schemaList = `{"type":"object","properties":{
		"channel":{"type":"string","minLength":1},
		"latest":{"type":"string","description":"Only messages before this ts."},
		"oldest":{"type":"string","description":"Only messages after this ts."},
		"inclusive":{"type":"boolean","description":"With messages of exactly these ts."},
		"limit":{"type":"integer","minimum":1,"maximum":999},
		"cursor":{"type":"string"}
	},"required":["channel"],"additionalProperties":false}`

	schemaEphemeral = `{"type":"object","properties":{
		"channel":{"type":"string","minLength":1},
		"user":{"type":"string","minLength":1,"description":"The id of the person who is to see it."},
		"text":{"type":"string","minLength":1,"maxLength":40000},
		"mrkdwn":{"type":"boolean"}
	},"required":["channel","user","text"],"additionalProperties":false}`

	schemaView = `{"type":"object","properties":{
		"trigger_id":{"type":"string","minLength":1,"description":"What Slack gave out with the person's click; it works once, for three seconds."},
		"view":{"type":"object"}
	},"required":["trigger_id","view"],"additionalProperties":false}`

	schemaReaction = `{"type":"object","properties":{
		"channel":{"type":"string","minLength":1},
		"timestamp":{"type":"string","minLength":1,"description":"The message's ts."},
		"name":{"type":"string","minLength":1,"description":"The emoji's name without colons."}
	},"required":["channel","timestamp","name"],"additionalProperties":false}`

	schemaWebhook = `{"type":"object","properties":{
		"text":{"type":"string","minLength":1,"maxLength":40000},
		"blocks":{"type":"array","minItems":1,"maxItems":50,"items":{"type":"object"}}
	},"anyOf":[{"required":["text"]},{"required":["blocks"]}],"additionalProperties":false}`

	schemaMessage = `{"type":"object","properties":{
		"ok":{"const":true},"channel":{"type":"string"},"ts":{"type":"string"}
	},"required":["ok","channel","ts"]}`

	schemaMessages = `{"type":"object","properties":{
		"ok":{"const":true},"messages":{"type":"array","items":{"type":"object"}},"has_more":{"type":"boolean"}
	},"required":["ok","messages"]}`

	schemaOK = `{"type":"object","properties":{"ok":{"const":true}},"required":["ok"]}`
)

func (a *api) tools() []rest.Tool {
	return []rest.Tool{
		{
			Name: ToolMessageSend, Title: "Send a message",
			Description: "Sends a message to a channel, a thread or a person.",
			Input:       schemaSend, Output: schemaMessage, Effect: envelope.EffectOnce,
			Run: a.send,
		},
		{
			Name: ToolMessageUpdate, Title: "Change a message",
			Description: "Replaces the text or the blocks of a message that this app sent.",
			Input:       schemaUpdate, Output: schemaMessage, Effect: envelope.EffectIdempotent, Destructive: true,
			Run: a.write("chat.update"),
		},
		{
			Name: ToolMessageDelete, Title: "Delete a message",
			Description: "Deletes a message that this app sent.",
			Input:       schemaDelete, Output: schemaMessage, Effect: envelope.EffectIdempotent, Destructive: true,
			Run: a.write("chat.delete", "message_not_found"),
		},
		{
			Name: ToolMessageList, Title: "Read messages",
			Description: "Reads the messages of a channel, newest first, with their metadata.",
			Input:       schemaList, Output: schemaMessages, Effect: envelope.EffectRead,
			Run: a.list,
		},
		{
			Name: ToolMessageEphemeral, Title: "Send an ephemeral message",
			Description: "Shows a message in a channel to one person only.",
			Input:       schemaEphemeral, Output: schemaOK, Effect: envelope.EffectOnce,
			Run: a.write("chat.postEphemeral"),
		},
		{
			Name: ToolViewOpen, Title: "Open a form",
			Description: "Opens a form for a person who has just clicked.",
			Input:       schemaView, Output: schemaOK, Effect: envelope.EffectKeyed,
			Run: a.write("views.open", "exchanged_trigger_id"),
		},
		{
			Name: ToolReactionAdd, Title: "Add a reaction",
			Description: "Adds an emoji to a message.",
			Input:       schemaReaction, Output: schemaOK, Effect: envelope.EffectIdempotent,
			Run: a.write("reactions.add", "already_reacted"),
		},
		{
			Name: ToolReactionRemove, Title: "Remove a reaction",
			Description: "Takes this app's emoji off a message.",
			Input:       schemaReaction, Output: schemaOK, Effect: envelope.EffectIdempotent, Destructive: true,
			Run: a.write("reactions.remove", "no_reaction"),
		},
	}
}

func (a *api) webhookTool() rest.Tool {
	return rest.Tool{
		Name: ToolWebhookSend, Title: "Send to the webhook's channel",
		Description: "Sends a message to the one channel of the incoming webhook.",
		Input:       schemaWebhook, Output: schemaOK, Effect: envelope.EffectOnce,
		Run: a.post,
	}
}
