package catalog_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/tenant/contact"
)

// TestRecipientsOfPublicServers checks that the recipients inferred for the
// tools of public MCP servers are people and channels, not paths, entities or
// branches.
func TestRecipientsOfPublicServers(t *testing.T) {
	t.Parallel()
	got := make(map[string][]string)

	for server, tools := range serverTools(t, "servers.txt") {
		for _, tool := range tools {
			if recipients := contact.InferRecipients(tool.InputSchema); recipients != nil {
				got[server+":"+tool.Name] = slices.Clone(recipients)
			}
		}
	}

	channel, user := []string{"/channel_id"}, []string{"/user_id"}
	want := map[string][]string{
		"notion:API-get-user":             user,
		"slack:slack_add_reaction":        channel,
		"slack:slack_get_channel_history": channel,
		"slack:slack_get_thread_replies":  channel,
		"slack:slack_get_user_profile":    user,
		"slack:slack_post_message":        channel,
		"slack:slack_reply_to_thread":     channel,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("InferRecipients (-want +got):\n%s", diff)
	}
}
