package slack

import (
	"slices"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// observe reads an answer of the Web API, which reports most errors with
// status 200 and one of the documented codes.
func observe(reply rest.Reply, conflicts []string) source.Observation {
	o := reply.Observe()
	if !o.Answered {
		return o
	}
	var answer struct {
		OK          *bool `json:"ok"`
		Error       string
		Channel, TS string
	}
	switch {
	case !reply.Decode(&answer) || answer.OK == nil:
		return o.Malformed()
	case *answer.OK:
		if answer.Channel != "" && answer.TS != "" {
			o.ProviderID = answer.Channel + "/" + answer.TS
		}
		return o
	case slices.Contains(conflicts, answer.Error):
		return o.AlreadyDone()
	}
	switch code := codeOf(answer.Error); code {
	case source.CodeRateLimited, source.CodeUnreachable:
		return o.NotExecuted(code)
	case source.CodeServerError:
		return o.Unanswered(code)
	case "":
		return o.ToolFailed()
	default:
		return o.Permanently(code)
	}
}

// codeOf returns the code for an error of the Web API; empty for an unknown
// error, which only says that the call failed. CodeUnreachable stands for a call
// that was not looked at.
func codeOf(word string) string {
	switch word {
	case "ratelimited", "rate_limited":
		return source.CodeRateLimited
	case "external_channel_migrating", "request_timeout", "team_added_to_org":
		// The workspace or channel is being moved; the body was not whole.
		return source.CodeUnreachable
	case "fatal_error", "internal_error", "service_unavailable":
		// According to the documentation, parts of the call may have succeeded.
		return source.CodeServerError
	case "access_denied", "account_inactive", "ekm_access_denied", "enterprise_is_restricted", "invalid_auth",
		"missing_scope", "no_permission", "not_allowed_token_type", "not_authed", "org_login_required",
		"restricted_action", "restricted_action_non_threadable_channel", "restricted_action_read_only_channel",
		"restricted_action_thread_locked", "restricted_action_thread_only_channel", "team_access_not_granted",
		"token_expired", "token_revoked", "two_factor_setup_required":
		return source.CodeUnauthorized
	case "channel_not_found", "message_not_found", "thread_not_found", "user_not_found":
		return source.CodeNotFound
	case "bad_timestamp", "block_mismatch", "invalid_arg_name", "invalid_arguments", "invalid_array_arg", "invalid_blocks",
		"invalid_blocks_format", "invalid_charset", "invalid_cursor", "invalid_form_data", "invalid_json", "invalid_limit",
		"invalid_metadata_format", "invalid_metadata_schema", "invalid_name", "invalid_post_type", "invalid_trigger_id", "invalid_ts_latest",
		"invalid_ts_oldest", "json_not_object", "metadata_too_large", "missing_post_type", "msg_blocks_too_long",
		"msg_too_long", "no_item_specified", "no_text", "too_many_attachments":
		return source.CodeInvalidArgs
	case "accesslimited", "cannot_reply_to_message", "cant_delete_message", "cant_update_message",
		"compliance_exports_prevent_deletion", "deprecated_endpoint", "edit_window_closed", "expired_trigger_id", "is_archived",
		"is_inactive", "method_deprecated", "messages_tab_disabled", "metadata_must_be_sent_from_app",
		"not_in_channel", "not_reactable", "thread_locked", "too_many_emoji", "too_many_reactions",
		"user_not_in_channel":
		return source.CodeRejected
	}
	return ""
}
