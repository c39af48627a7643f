// Package route is the table of routes: for each its operation, who may call it, the
// bounds of its requests and its handler. It calls no handler.
package route

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/accounts"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/approvals"
	"github.com/countersign-dev/countersign/internal/server/rest/audit"
	"github.com/countersign-dev/countersign/internal/server/rest/deadletters"
	"github.com/countersign-dev/countersign/internal/server/rest/events"
	"github.com/countersign-dev/countersign/internal/server/rest/insight"
	"github.com/countersign-dev/countersign/internal/server/rest/limits"
	"github.com/countersign-dev/countersign/internal/server/rest/policies"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/server/rest/tools"
	"github.com/countersign-dev/countersign/internal/server/rest/triage"
	"github.com/countersign-dev/countersign/internal/server/rest/workflows"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Route is a line of the table.
type Route struct {
	access.Route
	// MaxBody bounds the body in bytes.
	MaxBody int64
	// OwnParser reports whether the handler parses the body itself, more strictly
	// than the schema.
	OwnParser bool
	// ForeignQuery reports whether the query comes from another service, which may add
	// parameters of its own.
	ForeignQuery bool
	// Endless reports whether requests have no deadline.
	Endless bool
	// Wait is the default wait of a request for an action's end.
	Wait time.Duration
	// Handle answers a request.
	Handle request.Handler
}

// Access returns who may call which route.
func Access() access.Table {
	var table access.Table
	for _, rt := range Table() {
		table = append(table, rt.Route)
	}
	return table
}

// Table returns the table of everything that the API answers.
func Table() []Route {
	all := []identity.Role{identity.RoleAgent, identity.RoleViewer, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	proposers := []identity.Role{identity.RoleAgent, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	readers := []identity.Role{identity.RoleViewer, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	people := []identity.Role{identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	admin := []identity.Role{identity.RoleAdmin, identity.RoleOwner}
	owner := []identity.Role{identity.RoleOwner}
	const one, many = envelope.MaxBytes, envelope.MaxManyBytes
	const contactBytes, limitsBytes = 8 << 20, 4 << 20
	const workflowBytes, policyBytes = 4 << 20, 4 << 20
	return []Route{
		{Route: access.Route{Pattern: "POST /api/v1/actions", Operation: "submitAction", Roles: proposers, Scope: identity.ActionsPropose}, MaxBody: one, OwnParser: true, Handle: actions.Submit},
		{Route: access.Route{Pattern: "POST /api/v1/actions/batch", Operation: "submitActions", Roles: proposers, Scope: identity.ActionsPropose}, MaxBody: many, OwnParser: true, Handle: actions.SubmitMany},
		{Route: access.Route{Pattern: "GET /api/v1/actions", Operation: "listActions", Roles: all, Scope: identity.ActionsRead}, Handle: actions.List},
		{Route: access.Route{Pattern: "GET /api/v1/actions/{id}", Operation: "getAction", Roles: all, Scope: identity.ActionsRead}, Handle: request.WithAction(actions.Show)},
		{Route: access.Route{Pattern: "GET /api/v1/actions/{id}/attempts", Operation: "listAttempts", Roles: all, Scope: identity.ActionsRead}, Handle: request.WithAction(actions.Attempts)},
		{Route: access.Route{Pattern: "GET /api/v1/actions/{id}/history", Operation: "listHistory", Roles: all, Scope: identity.ActionsRead}, Handle: request.WithAction(actions.History)},
		{Route: access.Route{Pattern: "GET /api/v1/actions/{id}/forecast", Operation: "getForecast", Roles: readers, Scope: identity.ActionsRead}, Handle: request.WithAction(actions.Forecast)},
		{Route: access.Route{Pattern: "GET /api/v1/actions/{id}/wait", Operation: "waitForAction", Roles: all, Scope: identity.ActionsRead}, Wait: request.DefaultWait, Handle: request.WithAction(actions.Show)},
		{Route: access.Route{Pattern: "POST /api/v1/actions/{id}/always", Operation: "previewAlways", Roles: people, Scope: identity.ApprovalsDecide}, MaxBody: one, Handle: request.WithBodyAndAction(approvals.PreviewAlways)},
		{Route: access.Route{Pattern: "POST /api/v1/actions/{id}/approve", Operation: "approveAction", Roles: people, Scope: identity.ApprovalsDecide}, MaxBody: one, Handle: request.WithBodyAndAction(approvals.Approve)},
		{Route: access.Route{Pattern: "POST /api/v1/actions/{id}/deny", Operation: "denyAction", Roles: people, Scope: identity.ApprovalsDecide}, MaxBody: one, Handle: request.WithBodyAndAction(approvals.Deny)},
		{Route: access.Route{Pattern: "POST /api/v1/actions/{id}/edit", Operation: "editAction", Roles: people, Scope: identity.ApprovalsDecide}, MaxBody: one, Handle: request.WithBodyAndAction(approvals.Edit)},
		{Route: access.Route{Pattern: "POST /api/v1/actions/{id}/respond", Operation: "respondToAction", Roles: people, Scope: identity.ApprovalsDecide}, MaxBody: one, OwnParser: true, Handle: request.WithAction(approvals.Respond)},
		{Route: access.Route{Pattern: "GET /api/v1/actions/{id}/votes", Operation: "listVotes", Roles: readers, Scope: identity.ActionsRead}, Handle: request.WithAction(approvals.Votes)},
		{Route: access.Route{Pattern: "POST /api/v1/actions/approve", Operation: "approveActions", Roles: people, Scope: identity.ApprovalsDecide}, MaxBody: one, Handle: request.WithBody(approvals.ApproveMany)},
		{Route: access.Route{Pattern: "POST /api/v1/actions/deny", Operation: "denyActions", Roles: people, Scope: identity.ApprovalsDecide}, MaxBody: one, Handle: request.WithBody(approvals.DenyMany)},
		{Route: access.Route{Pattern: "POST /api/v1/actions/{id}/undo", Operation: "undoAction", Roles: proposers, Scope: identity.ActionsPropose}, Handle: request.WithAction(actions.Undo)},
		{Route: access.Route{Pattern: "POST /api/v1/actions/{id}/revert", Operation: "revertAction", Roles: proposers, Scope: identity.ActionsPropose}, Handle: request.WithAction(actions.Revert)},
		{Route: access.Route{Pattern: "POST /api/v1/actions/revert", Operation: "revertActions", Roles: proposers, Scope: identity.ActionsPropose}, MaxBody: one, Handle: request.WithBody(actions.RevertMany)},

		{Route: access.Route{Pattern: "GET /api/v1/proposals", Operation: "listProposals", Roles: readers, Scope: identity.ActionsRead}, Handle: insight.SQLProposals},
		{Route: access.Route{Pattern: "GET /api/v1/proposals/{id}", Operation: "getProposal", Roles: readers, Scope: identity.ActionsRead}, Handle: request.WithAction(insight.SQLProposal)},

		{Route: access.Route{Pattern: "GET /api/v1/inbox", Operation: "getInbox", Roles: readers, Scope: identity.ActionsRead}, Handle: approvals.Inbox},
		{Route: access.Route{Pattern: "GET /api/v1/inbox/counts", Operation: "getInboxCounts", Roles: readers, Scope: identity.ActionsRead}, Handle: approvals.InboxCounts},
		{Route: access.Route{Pattern: "GET /api/v1/inbox/interrupts", Operation: "listInterrupts", Roles: readers, Scope: identity.ActionsRead}, Handle: approvals.Interrupts},
		{Route: access.Route{Pattern: "POST /api/v1/inbox/acknowledge", Operation: "acknowledgeInbox", Roles: people, Scope: identity.ApprovalsDecide}, MaxBody: one, Handle: triage.ForAllTools(request.WithBody(approvals.Acknowledge))},
		{Route: access.Route{Pattern: "GET /api/v1/reviews", Operation: "listReviews", Roles: readers, Scope: identity.PolicyRead}, Handle: approvals.Reviews},
		{Route: access.Route{Pattern: "PUT /api/v1/reviews/{tool}", Operation: "putReview", Roles: admin, Scope: identity.PolicyWrite}, MaxBody: one, Handle: request.WithBody(approvals.PutReview)},
		{Route: access.Route{Pattern: "DELETE /api/v1/reviews/{tool}", Operation: "deleteReview", Roles: admin, Scope: identity.PolicyWrite}, Handle: approvals.DeleteReview},

		{Route: access.Route{Pattern: "GET /api/v1/executions", Operation: "listExecutions", Roles: all, Scope: identity.ActionsRead}, Handle: insight.Executions},
		{Route: access.Route{Pattern: "GET /api/v1/executions/{id}", Operation: "getExecution", Roles: all, Scope: identity.ActionsRead}, Handle: request.WithAction(insight.Execution)},

		{Route: access.Route{Pattern: "POST /api/v1/workflows", Operation: "submitWorkflow", Roles: proposers, Scope: identity.ActionsPropose}, MaxBody: workflowBytes, Wait: request.MaxWait, Handle: request.WithBody(workflows.Submit)},
		{Route: access.Route{Pattern: "GET /api/v1/workflows", Operation: "listWorkflows", Roles: all, Scope: identity.ActionsRead}, Handle: workflows.List},
		{Route: access.Route{Pattern: "GET /api/v1/workflows/{id}", Operation: "getWorkflow", Roles: all, Scope: identity.ActionsRead}, Handle: workflows.Get},
		{Route: access.Route{Pattern: "POST /api/v1/workflows/{id}/cancel", Operation: "cancelWorkflow", Roles: proposers, Scope: identity.ActionsPropose}, Handle: workflows.Cancel},
		{Route: access.Route{Pattern: "POST /api/v1/workflows/{id}/retry", Operation: "retryWorkflow", Roles: people, Scope: identity.DeadLettersManage}, MaxBody: one, Handle: workflows.Retry},
		{Route: access.Route{Pattern: "POST /api/v1/workflows/{id}/resolve", Operation: "resolveWorkflow", Roles: people, Scope: identity.DeadLettersManage}, MaxBody: one, Handle: workflows.Resolve},

		{Route: access.Route{Pattern: "GET /api/v1/dead-letters", Operation: "listDeadLetters", Roles: readers, Scope: identity.DeadLettersRead}, Handle: deadletters.List},
		{Route: access.Route{Pattern: "GET /api/v1/dead-letters/export", Operation: "exportDeadLetters", Roles: readers, Scope: identity.DeadLettersRead}, Handle: deadletters.Export},
		{Route: access.Route{Pattern: "GET /api/v1/dead-letters/summary", Operation: "summarizeDeadLetters", Roles: readers, Scope: identity.DeadLettersRead}, Handle: deadletters.Summary},
		{Route: access.Route{Pattern: "GET /api/v1/dead-letters/{id}", Operation: "getDeadLetter", Roles: readers, Scope: identity.DeadLettersRead}, Handle: request.WithAction(deadletters.Get)},
		{Route: access.Route{Pattern: "POST /api/v1/dead-letters/{id}/resolve", Operation: "resolveDeadLetter", Roles: people, Scope: identity.DeadLettersManage}, MaxBody: one, Handle: request.WithAction(deadletters.Resolve)},
		{Route: access.Route{Pattern: "POST /api/v1/dead-letters/replay", Operation: "replayDeadLetters", Roles: people, Scope: identity.DeadLettersManage}, MaxBody: one, Handle: request.WithBody(deadletters.Replay)},
		{Route: access.Route{Pattern: "POST /api/v1/dead-letters/discard", Operation: "discardDeadLetters", Roles: people, Scope: identity.DeadLettersManage}, MaxBody: one, Handle: request.WithBody(deadletters.Discard)},

		{Route: access.Route{Pattern: "GET /api/v1/recovery", Operation: "getRecovery", Roles: readers, Scope: identity.ActionsRead}, Handle: deadletters.Recovery},
		{Route: access.Route{Pattern: "POST /api/v1/recovery", Operation: "recoverDatabase", Roles: admin, Scope: identity.DatabaseRecover}, MaxBody: one, Handle: request.WithBody(deadletters.Recover)},

		{Route: access.Route{Pattern: "GET /api/v1/events", Operation: "streamEvents", Roles: all, Scope: identity.ActionsRead}, Endless: true, Handle: events.Stream},

		{Route: access.Route{Pattern: "GET /api/v1/subscriptions", Operation: "listSubscriptions", Roles: readers, Scope: identity.SubscriptionsRead}, Handle: events.Subscriptions},
		{Route: access.Route{Pattern: "PUT /api/v1/subscriptions/{name}", Operation: "putSubscription", Roles: admin, Scope: identity.SubscriptionsWrite}, MaxBody: one, Handle: request.WithBody(events.PutSubscription)},
		{Route: access.Route{Pattern: "DELETE /api/v1/subscriptions/{name}", Operation: "deleteSubscription", Roles: admin, Scope: identity.SubscriptionsWrite}, Handle: events.DeleteSubscription},
		{Route: access.Route{Pattern: "POST /api/v1/subscriptions/{name}/test", Operation: "testSubscription", Roles: admin, Scope: identity.SubscriptionsWrite}, Handle: events.TestSubscription},
		{Route: access.Route{Pattern: "POST /api/v1/actions/{id}/resend", Operation: "resendDelivery", Roles: people, Scope: identity.DeadLettersManage}, MaxBody: one, Handle: request.WithBodyAndAction(events.ResendDelivery)},
		// Slack shows no token: it signs.
		{Route: access.Route{Pattern: "POST /api/v1/slack/interactions/{subscription}", Operation: "slackInteraction"}, MaxBody: one, OwnParser: true, Handle: events.SlackInteraction},

		{Route: access.Route{Pattern: "GET /api/v1/tools", Operation: "listTools", Roles: all, Scope: identity.CatalogRead}, Handle: tools.List},
		{Route: access.Route{Pattern: "GET /api/v1/tools/{tool}", Operation: "getTool", Roles: all, Scope: identity.CatalogRead}, Handle: tools.Get},
		{Route: access.Route{Pattern: "GET /api/v1/tools/{tool}/diff", Operation: "diffTool", Roles: readers, Scope: identity.CatalogRead}, Handle: request.WithTool(tools.Diff)},
		{Route: access.Route{Pattern: "PUT /api/v1/tools/{tool}/description", Operation: "describeTool", Roles: people, Scope: identity.CatalogWrite}, MaxBody: one, Handle: request.WithBodyAndTool(tools.Describe)},
		{Route: access.Route{Pattern: "POST /api/v1/tools/{tool}", Operation: "invokeTool", Roles: proposers, Scope: identity.ActionsPropose}, MaxBody: one, Wait: request.MaxWait, Handle: request.WithBody(actions.Invoke)},
		{Route: access.Route{Pattern: "GET /api/v1/snapshot-rules", Operation: "listSnapshotRules", Roles: readers, Scope: identity.CatalogRead}, Handle: tools.SnapshotRules},
		{Route: access.Route{Pattern: "PUT /api/v1/tools/{tool}/snapshot-rule", Operation: "putSnapshotRule", Roles: people, Scope: identity.CatalogWrite}, MaxBody: one, Handle: request.WithBodyAndTool(tools.PutSnapshotRule)},
		{Route: access.Route{Pattern: "DELETE /api/v1/tools/{tool}/snapshot-rule", Operation: "deleteSnapshotRule", Roles: people, Scope: identity.CatalogWrite}, Handle: request.WithTool(tools.DeleteSnapshotRule)},
		{Route: access.Route{Pattern: "POST /api/v1/tools/{tool}/accept", Operation: "acceptTool", Roles: admin, Scope: identity.CatalogWrite}, MaxBody: one, Handle: request.WithBodyAndTool(tools.Accept)},
		{Route: access.Route{Pattern: "PUT /api/v1/tools/{tool}/overrides", Operation: "configureTool", Roles: people, Scope: identity.CatalogWrite}, MaxBody: one, Handle: request.WithBodyAndTool(tools.Override)},
		{Route: access.Route{Pattern: "PUT /api/v1/tools/{tool}/rule", Operation: "putToolRule", Roles: people, Scope: identity.CatalogWrite}, MaxBody: one, Handle: request.WithBodyAndTool(tools.PutRule)},
		{Route: access.Route{Pattern: "GET /api/v1/reconcile-rules", Operation: "listReconcileRules", Roles: readers, Scope: identity.CatalogRead}, Handle: tools.ReconcileRules},
		{Route: access.Route{Pattern: "PUT /api/v1/tools/{tool}/reconcile-rule", Operation: "putReconcileRule", Roles: people, Scope: identity.CatalogWrite}, MaxBody: one, Handle: request.WithBodyAndTool(tools.PutReconcileRule)},
		{Route: access.Route{Pattern: "DELETE /api/v1/tools/{tool}/reconcile-rule", Operation: "deleteReconcileRule", Roles: people, Scope: identity.CatalogWrite}, Handle: request.WithTool(tools.DeleteReconcileRule)},
		{Route: access.Route{Pattern: "GET /api/v1/sources", Operation: "listSources", Roles: readers, Scope: identity.CatalogRead}, Handle: tools.Sources},
		{Route: access.Route{Pattern: "PUT /api/v1/sources/{id}", Operation: "putSource", Roles: admin, Scope: identity.CatalogWrite}, MaxBody: one, Handle: request.WithBody(tools.PutSource)},
		{Route: access.Route{Pattern: "POST /api/v1/sources/{id}/accept", Operation: "acceptSource", Roles: admin, Scope: identity.PolicyWrite}, Handle: tools.AcceptSource},
		{Route: access.Route{Pattern: "POST /api/v1/sources/{id}/refresh", Operation: "refreshSource", Roles: people, Scope: identity.CatalogWrite}, Handle: tools.RefreshSource},
		{Route: access.Route{Pattern: "POST /api/v1/sources/{id}/login", Operation: "beginSourceLogin", Roles: admin, Scope: identity.CatalogWrite}, MaxBody: one, Handle: request.WithBody(tools.BeginSourceLogin)},
		{Route: access.Route{Pattern: "DELETE /api/v1/sources/{id}/login", Operation: "removeSourceLogin", Roles: admin, Scope: identity.CatalogWrite}, Handle: tools.RemoveSourceLogin},
		{Route: access.Route{Pattern: "POST /api/v1/sources/{id}/login/finish", Operation: "finishSourceLogin", Roles: admin, Scope: identity.CatalogWrite}, MaxBody: one, Handle: request.WithBody(tools.FinishSourceLogin)},
		{Route: access.Route{Pattern: "GET /auth/source", Operation: "showSourceLogin"}, ForeignQuery: true, Handle: tools.ShowSourceLogin},
		{Route: access.Route{Pattern: "GET /auth/source-client", Operation: "getSourceClient"}, Handle: tools.GetSourceClient},
		{Route: access.Route{Pattern: "DELETE /api/v1/sources/{id}", Operation: "deleteSource", Roles: admin, Scope: identity.CatalogWrite}, Handle: tools.DeleteSource},
		{Route: access.Route{Pattern: "GET /api/v1/policy", Operation: "getPolicy", Roles: readers, Scope: identity.PolicyRead}, Handle: policies.Get},
		{Route: access.Route{Pattern: "PUT /api/v1/policy", Operation: "putPolicy", Roles: admin, Scope: identity.PolicyWrite}, MaxBody: policyBytes, Handle: request.WithBody(policies.Put)},
		{Route: access.Route{Pattern: "POST /api/v1/policy/simulate", Operation: "simulatePolicy", Roles: readers, Scope: identity.PolicyRead}, MaxBody: policyBytes, Handle: policies.Simulate},
		{Route: access.Route{Pattern: "GET /api/v1/policy/matrix", Operation: "getPolicyMatrix", Roles: readers, Scope: identity.PolicyRead}, Handle: policies.Matrix},
		{Route: access.Route{Pattern: "GET /api/v1/policy/usage", Operation: "getPolicyUsage", Roles: readers, Scope: identity.PolicyRead}, Handle: policies.Usage},
		{Route: access.Route{Pattern: "POST /api/v1/policy/check", Operation: "checkRule", Roles: readers, Scope: identity.PolicyRead}, MaxBody: one, Handle: request.WithBody(policies.CheckRule)},
		{Route: access.Route{Pattern: "GET /api/v1/policy/modes", Operation: "listModes", Roles: readers, Scope: identity.PolicyRead}, Handle: policies.Modes},
		{Route: access.Route{Pattern: "PUT /api/v1/policy/modes/{tool}", Operation: "putMode", Roles: admin, Scope: identity.PolicyWrite}, MaxBody: one, Handle: request.WithBody(policies.PutMode)},
		{Route: access.Route{Pattern: "DELETE /api/v1/policy/modes/{tool}", Operation: "deleteMode", Roles: admin, Scope: identity.PolicyWrite}, Handle: policies.DeleteMode},
		{Route: access.Route{Pattern: "GET /api/v1/policy/rules", Operation: "listRules", Roles: readers, Scope: identity.PolicyRead}, Handle: policies.Rules},
		{Route: access.Route{Pattern: "PUT /api/v1/policy/rules/{id}", Operation: "putRule", Roles: admin, Scope: identity.PolicyWrite}, MaxBody: one, Handle: policies.PutRule},
		{Route: access.Route{Pattern: "DELETE /api/v1/policy/rules/{id}", Operation: "deleteRule", Roles: admin, Scope: identity.PolicyWrite}, Handle: policies.DeleteRule},
		{Route: access.Route{Pattern: "GET /api/v1/policy/grants", Operation: "listGrants", Roles: readers, Scope: identity.PolicyRead}, Handle: policies.Grants},
		{Route: access.Route{Pattern: "POST /api/v1/policy/grants", Operation: "makeGrant", Roles: admin, Scope: identity.PolicyWrite}, MaxBody: one, Handle: request.WithBody(policies.MakeGrant)},
		{Route: access.Route{Pattern: "DELETE /api/v1/policy/grants/{id}", Operation: "revokeGrant", Roles: people, Scope: identity.PolicyWrite}, Handle: policies.RevokeGrant},
		{Route: access.Route{Pattern: "GET /api/v1/policy/sessions", Operation: "listSessionModes", Roles: readers, Scope: identity.PolicyRead}, Handle: policies.SessionModes},
		{Route: access.Route{Pattern: "PUT /api/v1/policy/sessions/{session_id}/{tool}", Operation: "putSessionMode", Roles: admin, Scope: identity.PolicyWrite}, MaxBody: one, Handle: request.WithBody(policies.PutSessionMode)},
		{Route: access.Route{Pattern: "DELETE /api/v1/policy/sessions/{session_id}/{tool}", Operation: "deleteSessionMode", Roles: admin, Scope: identity.PolicyWrite}, Handle: policies.DeleteSessionMode},
		{Route: access.Route{Pattern: "POST /api/v1/policy/explain", Operation: "explainPolicy", Roles: readers, Scope: identity.PolicyRead}, MaxBody: one, Handle: request.WithBody(policies.Explain)},
		{Route: access.Route{Pattern: "GET /api/v1/preferences", Operation: "listPreferences", Roles: all, Scope: identity.PolicyRead}, Handle: policies.Preferences},
		{Route: access.Route{Pattern: "PUT /api/v1/preferences/{tool}", Operation: "putPreference", Roles: people, Scope: identity.PolicyWrite}, Handle: policies.PutPreference},
		{Route: access.Route{Pattern: "DELETE /api/v1/preferences/{tool}", Operation: "deletePreference", Roles: people, Scope: identity.PolicyWrite}, Handle: policies.DeletePreference},

		{Route: access.Route{Pattern: "GET /api/v1/guide", Operation: "getGuide", Roles: all, Scope: identity.CatalogRead}, Handle: tools.Guide},
		{Route: access.Route{Pattern: "GET /api/v1/notes", Operation: "listNotes", Roles: readers, Scope: identity.ActionsRead}, Handle: insight.Notes},

		{Route: access.Route{Pattern: "GET /api/v1/bucket-names", Operation: "listBucketNames", Roles: all, Scope: identity.LimitsRead}, Handle: limits.BucketNames},
		{Route: access.Route{Pattern: "GET /api/v1/buckets", Operation: "listBuckets", Roles: readers, Scope: identity.LimitsRead}, Handle: limits.Buckets},
		{Route: access.Route{Pattern: "GET /api/v1/buckets/{name}", Operation: "getBucket", Roles: readers, Scope: identity.LimitsRead}, Handle: limits.Bucket},
		{Route: access.Route{Pattern: "PUT /api/v1/buckets/{name}", Operation: "putBucket", Roles: admin, Scope: identity.LimitsWrite}, MaxBody: one, Handle: request.WithBody(limits.PutBucket)},
		{Route: access.Route{Pattern: "DELETE /api/v1/buckets/{name}", Operation: "retireBucket", Roles: admin, Scope: identity.LimitsWrite}, Handle: limits.RetireBucket},
		{Route: access.Route{Pattern: "POST /api/v1/buckets/{name}/reopen", Operation: "reopenBucket", Roles: people, Scope: identity.LimitsWrite}, Handle: limits.ReopenBucket},
		{Route: access.Route{Pattern: "GET /api/v1/quiet-hours", Operation: "listQuietHours", Roles: readers, Scope: identity.LimitsRead}, Handle: limits.QuietHours},
		{Route: access.Route{Pattern: "POST /api/v1/quiet-hours/preview", Operation: "previewQuietHours", Roles: readers, Scope: identity.LimitsRead}, MaxBody: one, Handle: request.WithBody(limits.PreviewQuietHours)},
		{Route: access.Route{Pattern: "PUT /api/v1/quiet-hours/{scope}", Operation: "putQuietHours", Roles: admin, Scope: identity.LimitsWrite}, MaxBody: one, Handle: request.WithBody(limits.PutQuietHours)},
		{Route: access.Route{Pattern: "DELETE /api/v1/quiet-hours/{scope}", Operation: "deleteQuietHours", Roles: admin, Scope: identity.LimitsWrite}, Handle: limits.DeleteQuietHours},
		{Route: access.Route{Pattern: "GET /api/v1/do-not-contact", Operation: "listDoNotContact", Roles: readers, Scope: identity.ContactsRead}, Handle: limits.DoNotContact},
		{Route: access.Route{Pattern: "POST /api/v1/do-not-contact", Operation: "addDoNotContact", Roles: people, Scope: identity.ContactsWrite}, MaxBody: contactBytes, Handle: limits.AddDoNotContact},
		{Route: access.Route{Pattern: "POST /api/v1/do-not-contact/check", Operation: "checkDoNotContact", Roles: readers, Scope: identity.ContactsRead}, MaxBody: one, Handle: request.WithBody(limits.CheckDoNotContact)},
		{Route: access.Route{Pattern: "POST /api/v1/do-not-contact/remove", Operation: "removeDoNotContact", Roles: admin, Scope: identity.ContactsWrite}, MaxBody: contactBytes, Handle: limits.RemoveDoNotContact},
		{Route: access.Route{Pattern: "POST /api/v1/do-not-contact/import", Operation: "importDoNotContact", Roles: admin, Scope: identity.ContactsWrite}, MaxBody: contactBytes, OwnParser: true, Handle: limits.ImportDoNotContact},
		{Route: access.Route{Pattern: "GET /api/v1/do-not-contact/export", Operation: "exportDoNotContact", Roles: readers, Scope: identity.ContactsRead}, Endless: true, Handle: limits.ExportDoNotContact},
		{Route: access.Route{Pattern: "GET /api/v1/employees", Operation: "listEmployees", Roles: readers, Scope: identity.LimitsRead}, Handle: limits.Employees},
		{Route: access.Route{Pattern: "PUT /api/v1/employees/{id}", Operation: "putEmployee", Roles: admin, Scope: identity.LimitsWrite}, MaxBody: one, Handle: request.WithBody(limits.PutEmployee)},
		{Route: access.Route{Pattern: "DELETE /api/v1/employees/{id}", Operation: "deleteEmployee", Roles: admin, Scope: identity.LimitsWrite}, Handle: limits.DeleteEmployee},
		{Route: access.Route{Pattern: "GET /api/v1/pauses", Operation: "listPauses", Roles: readers, Scope: identity.LimitsRead}, Handle: limits.Pauses},
		{Route: access.Route{Pattern: "POST /api/v1/pauses", Operation: "pause", Roles: people, Scope: identity.PausesWrite}, MaxBody: one, Handle: request.WithBody(limits.Pause)},
		{Route: access.Route{Pattern: "GET /api/v1/pauses/forecast", Operation: "forecastPause", Roles: readers, Scope: identity.LimitsRead}, Handle: limits.ForecastPause},
		{Route: access.Route{Pattern: "DELETE /api/v1/pauses/{id}", Operation: "resume", Roles: people, Scope: identity.PausesWrite}, Handle: limits.Resume},
		{Route: access.Route{Pattern: "GET /api/v1/breakers", Operation: "listBreakers", Roles: readers, Scope: identity.LimitsRead}, Handle: limits.Breakers},
		{Route: access.Route{Pattern: "POST /api/v1/breakers/{id}/reset", Operation: "resetBreaker", Roles: people, Scope: identity.LimitsWrite}, Handle: limits.ResetBreaker},
		{Route: access.Route{Pattern: "GET /api/v1/settings", Operation: "getSettings", Roles: readers, Scope: identity.LimitsRead}, Handle: limits.Settings},
		{Route: access.Route{Pattern: "PUT /api/v1/settings", Operation: "putSettings", Roles: admin, Scope: identity.LimitsWrite}, MaxBody: one, Handle: request.WithBody(limits.PutSettings)},
		{Route: access.Route{Pattern: "GET /api/v1/limits", Operation: "getLimits", Roles: readers, Scope: identity.LimitsRead}, Handle: limits.Get},
		{Route: access.Route{Pattern: "PUT /api/v1/limits", Operation: "putLimits", Roles: admin, Scope: identity.LimitsWrite}, MaxBody: limitsBytes, Handle: request.WithBody(limits.Put)},

		{Route: access.Route{Pattern: "GET /api/v1/me", Operation: "getMe", Roles: all}, Handle: accounts.Me},
		{Route: access.Route{Pattern: "GET /api/v1/me/sessions", Operation: "listMySessions", Roles: readers}, Handle: accounts.Sessions},
		{Route: access.Route{Pattern: "DELETE /api/v1/me/sessions/{id}", Operation: "endMySession", Roles: readers}, Handle: accounts.EndSession},
		{Route: access.Route{Pattern: "POST /api/v1/login-codes", Operation: "createLoginCode", Roles: readers}, Handle: accounts.CreateLoginCode},
		{Route: access.Route{Pattern: "GET /auth/options", Operation: "getLoginOptions"}, Handle: accounts.LoginOptions},
		{Route: access.Route{Pattern: "GET /auth/login", Operation: "startLogin"}, Handle: accounts.StartLogin},
		{Route: access.Route{Pattern: "GET /auth/callback", Operation: "finishLogin"}, ForeignQuery: true, Handle: accounts.FinishLogin},
		{Route: access.Route{Pattern: "POST /auth/code", Operation: "showLoginCode"}, MaxBody: one, Handle: request.WithBody(accounts.ShowLoginCode)},
		{Route: access.Route{Pattern: "POST /auth/program", Operation: "showProgramRequest", Roles: readers}, MaxBody: one, Handle: request.WithBody(accounts.ShowProgram)},
		{Route: access.Route{Pattern: "POST /auth/consent", Operation: "consentToProgram", Roles: admin, Scope: identity.TokensManage}, MaxBody: one, Handle: request.WithBody(accounts.Consent)},
		{Route: access.Route{Pattern: "POST /auth/session", Operation: "openSession"}, MaxBody: one, Handle: request.WithBody(accounts.OpenSession)},
		{Route: access.Route{Pattern: "POST /auth/touch", Operation: "touchSession", Roles: readers}, Handle: accounts.TouchSession},
		{Route: access.Route{Pattern: "POST /auth/logout", Operation: "closeSession"}, Handle: accounts.CloseSession},
		{Route: access.Route{Pattern: "GET /api/v1/tokens", Operation: "listTokens", Roles: admin, Scope: identity.TokensManage}, Handle: accounts.Tokens},
		{Route: access.Route{Pattern: "POST /api/v1/tokens", Operation: "issueToken", Roles: admin, Scope: identity.TokensManage}, MaxBody: one, Handle: request.WithBody(accounts.IssueToken)},
		{Route: access.Route{Pattern: "POST /api/v1/tokens/{id}/rotate", Operation: "rotateToken", Roles: admin, Scope: identity.TokensManage}, MaxBody: one, Handle: accounts.RotateToken},
		{Route: access.Route{Pattern: "POST /api/v1/tokens/{id}/narrow", Operation: "narrowToken", Roles: admin, Scope: identity.TokensManage}, MaxBody: one, Handle: accounts.NarrowToken},
		{Route: access.Route{Pattern: "DELETE /api/v1/tokens/{id}", Operation: "revokeToken", Roles: admin, Scope: identity.TokensManage}, Handle: accounts.RevokeToken},
		{Route: access.Route{Pattern: "GET /api/v1/operators", Operation: "listOperators", Roles: admin, Scope: identity.OperatorsManage}, Handle: accounts.Operators},
		{Route: access.Route{Pattern: "POST /api/v1/operators", Operation: "createOperator", Roles: admin, Scope: identity.OperatorsManage}, MaxBody: one, Handle: accounts.CreateOperator},
		{Route: access.Route{Pattern: "GET /api/v1/operators/sessions", Operation: "listSessions", Roles: admin, Scope: identity.OperatorsManage}, Handle: accounts.OpenSessions},
		{Route: access.Route{Pattern: "DELETE /api/v1/operators/sessions/{id}", Operation: "endSession", Roles: admin, Scope: identity.OperatorsManage}, Handle: accounts.EndOpenSession},
		{Route: access.Route{Pattern: "PUT /api/v1/operators/{id}", Operation: "putOperator", Roles: admin, Scope: identity.OperatorsManage}, MaxBody: one, Handle: accounts.PutOperator},
		{Route: access.Route{Pattern: "GET /api/v1/identity-providers", Operation: "listProviders", Roles: admin, Scope: identity.OperatorsManage}, Handle: accounts.Providers},
		{Route: access.Route{Pattern: "PUT /api/v1/identity-providers/{id}", Operation: "putProvider", Roles: owner, Scope: identity.OperatorsManage}, MaxBody: one, Handle: request.WithBody(accounts.PutProvider)},
		{Route: access.Route{Pattern: "DELETE /api/v1/identity-providers/{id}", Operation: "deleteProvider", Roles: owner, Scope: identity.OperatorsManage}, Handle: accounts.DeleteProvider},

		{Route: access.Route{Pattern: "GET /api/v1/audit/verify", Operation: "verifyAudit", Roles: readers, Scope: identity.AuditRead}, Handle: audit.Verify},
		{Route: access.Route{Pattern: "PUT /api/v1/audit/heads/{checkpoint_no}", Operation: "noteHead", Roles: people, Scope: identity.AuditWrite}, MaxBody: one, Handle: request.WithBody(audit.NoteHead)},
		{Route: access.Route{Pattern: "GET /api/v1/audit/log", Operation: "listAuditLog", Roles: readers, Scope: identity.AuditRead}, Handle: audit.Log},
		{Route: access.Route{Pattern: "GET /api/v1/audit/events", Operation: "exportAudit", Roles: readers, Scope: identity.AuditRead}, Endless: true, Handle: audit.Export},
		{Route: access.Route{Pattern: "GET /api/v1/retention", Operation: "listRetention", Roles: readers, Scope: identity.AuditRead}, Handle: audit.Retention},
		{Route: access.Route{Pattern: "PUT /api/v1/retention/{kind}", Operation: "putRetention", Roles: admin, Scope: identity.AuditWrite}, MaxBody: one, Handle: request.WithBody(audit.PutRetention)},

		{Route: access.Route{Pattern: "GET /api/v1/search", Operation: "search", Roles: readers, Scope: identity.ActionsRead}, Handle: insight.Search},
		{Route: access.Route{Pattern: "GET /api/v1/overview", Operation: "getOverview", Roles: readers, Scope: identity.ActionsRead}, Handle: insight.Overview},
		{Route: access.Route{Pattern: "GET /api/v1/workers", Operation: "listWorkers", Roles: people, Scope: identity.ActionsRead}, Handle: insight.Workers},
		{Route: access.Route{Pattern: "GET /api/v1/activity", Operation: "getActivity", Roles: readers, Scope: identity.ActionsRead}, Handle: insight.Activity},

		{Route: access.Route{Pattern: "GET /api/v1/triage/accounts", Operation: "listTriageAccounts", Roles: readers, Scope: identity.TriageRead}, Handle: triage.Accounts},
		{Route: access.Route{Pattern: "GET /api/v1/triage/accounts/{name}", Operation: "getTriageAccount", Roles: readers, Scope: identity.TriageRead}, Handle: triage.Account},
		{Route: access.Route{Pattern: "PUT /api/v1/triage/accounts/{name}", Operation: "putTriageAccount", Roles: admin, Scope: identity.TriageManage}, MaxBody: one, Handle: triage.ForAllTools(request.WithBody(triage.PutAccount))},
		{Route: access.Route{Pattern: "DELETE /api/v1/triage/accounts/{name}", Operation: "deleteTriageAccount", Roles: admin, Scope: identity.TriageManage}, Handle: triage.ForAllTools(triage.DeleteAccount)},
		{Route: access.Route{Pattern: "GET /api/v1/triage/accounts/{name}/export", Operation: "exportTriageAccount", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.ExportAccount)},
		{Route: access.Route{Pattern: "GET /api/v1/triage/accounts/{name}/labels", Operation: "listTriageLabels", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.Labels)},
		{Route: access.Route{Pattern: "PUT /api/v1/triage/accounts/{name}/labels/{label}", Operation: "putTriageLabel", Roles: people, Scope: identity.MailRead}, MaxBody: one, Handle: triage.ForAllTools(request.WithBody(triage.PutLabel))},
		{Route: access.Route{Pattern: "DELETE /api/v1/triage/accounts/{name}/labels/{label}", Operation: "deleteTriageLabel", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.DeleteLabel)},
		{Route: access.Route{Pattern: "POST /api/v1/triage/accounts/{name}/labels/{label}/try", Operation: "tryTriageLabel", Roles: people, Scope: identity.MailRead}, MaxBody: one, Handle: triage.ForAllTools(request.WithBody(triage.TryLabel))},
		{Route: access.Route{Pattern: "POST /api/v1/triage/accounts/{name}/preview", Operation: "previewTriageSettings", Roles: people, Scope: identity.TriageRead}, MaxBody: one, Handle: request.WithBody(triage.Preview)},
		{Route: access.Route{Pattern: "POST /api/v1/triage/accounts/{name}/purge", Operation: "purgeTriageAccount", Roles: admin, Scope: identity.TriageManage}, MaxBody: one, Handle: triage.ForAllTools(request.WithBody(triage.PurgeAccount))},
		{Route: access.Route{Pattern: "GET /api/v1/triage/accounts/{name}/brief", Operation: "getTriageBrief", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.Brief)},
		{Route: access.Route{Pattern: "GET /api/v1/triage/accounts/{name}/meeting", Operation: "prepareTriageMeeting", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.Meeting)},
		{Route: access.Route{Pattern: "GET /api/v1/triage/accounts/{name}/follow-ups", Operation: "listTriageFollowUps", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.FollowUps)},
		{Route: access.Route{Pattern: "GET /api/v1/triage/accounts/{name}/runs", Operation: "listTriageRuns", Roles: readers, Scope: identity.TriageRead}, Handle: triage.Runs},
		{Route: access.Route{Pattern: "POST /api/v1/triage/accounts/{name}/runs", Operation: "askTriageRun", Roles: people, Scope: identity.TriageManage}, Handle: triage.AskRun},
		{Route: access.Route{Pattern: "GET /api/v1/triage/accounts/{name}/set-aside", Operation: "listTriageSetAside", Roles: readers, Scope: identity.TriageRead}, Handle: triage.SetAside},
		{Route: access.Route{Pattern: "POST /api/v1/triage/accounts/{name}/set-aside", Operation: "retryTriageSetAside", Roles: people, Scope: identity.TriageManage}, Handle: triage.RetrySetAside},
		{Route: access.Route{Pattern: "GET /api/v1/triage/status", Operation: "getTriageStatus", Roles: readers, Scope: identity.TriageRead}, Handle: triage.Status},
		{Route: access.Route{Pattern: "GET /api/v1/triage/messages", Operation: "listTriageMessages", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.Messages)},
		{Route: access.Route{Pattern: "GET /api/v1/triage/messages/{id}", Operation: "getTriageMessage", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.Message)},
		{Route: access.Route{Pattern: "GET /api/v1/triage/messages/{id}/why", Operation: "explainTriageMessage", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.Why)},
		{Route: access.Route{Pattern: "GET /api/v1/triage/messages/{id}/corrections", Operation: "listTriageCorrections", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.Corrections)},
		{Route: access.Route{Pattern: "POST /api/v1/triage/messages/{id}/corrections", Operation: "correctTriageMessage", Roles: people, Scope: identity.MailRead}, MaxBody: one, Handle: triage.ForAllTools(request.WithBody(triage.Correct))},
		{Route: access.Route{Pattern: "DELETE /api/v1/triage/messages/{id}/corrections/{correction_no}", Operation: "retractTriageCorrection", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.Retract)},
		{Route: access.Route{Pattern: "PUT /api/v1/triage/messages/{id}/labels/{label}", Operation: "judgeTriageLabel", Roles: people, Scope: identity.MailRead}, MaxBody: one, Handle: triage.ForAllTools(request.WithBody(triage.JudgeLabel))},
		{Route: access.Route{Pattern: "GET /api/v1/triage/messages/{id}/texts", Operation: "listTriageTexts", Roles: people, Scope: identity.MailRead}, Handle: triage.ForAllTools(triage.Texts)},
		{Route: access.Route{Pattern: "POST /api/v1/triage/messages/{id}/texts", Operation: "askTriageText", Roles: people, Scope: identity.MailRead}, MaxBody: one, Handle: triage.ForAllTools(request.WithBody(triage.AskText))},
		{Route: access.Route{Pattern: "GET /api/v1/triage/actions", Operation: "listTriageActions", Roles: readers, Scope: identity.TriageRead}, Handle: triage.Actions},
		{Route: access.Route{Pattern: "GET /api/v1/triage/tags", Operation: "listTriageTags", Roles: readers, Scope: identity.TriageRead}, Handle: triage.Tags},
		{Route: access.Route{Pattern: "PUT /api/v1/triage/messages/{id}/tags/{action}", Operation: "setTriageTag", Roles: people, Scope: identity.ApprovalsDecide}, Handle: triage.ForAllTools(triage.SetTag)},
		{Route: access.Route{Pattern: "DELETE /api/v1/triage/messages/{id}/tags/{action}", Operation: "removeTriageTag", Roles: people, Scope: identity.ApprovalsDecide}, Handle: triage.ForAllTools(triage.RemoveTag)},
		{Route: access.Route{Pattern: "GET /api/v1/triage/tries", Operation: "listTriageTries", Roles: readers, Scope: identity.TriageRead}, Handle: triage.Tries},
		{Route: access.Route{Pattern: "POST /api/v1/triage/tries/{log_id}/retry", Operation: "retryTriageTag", Roles: people, Scope: identity.ApprovalsDecide}, Handle: triage.ForAllTools(triage.RetryTag)},
		{Route: access.Route{Pattern: "GET /api/actions/available", Operation: "listAvailableActions", Roles: readers, Scope: identity.TriageRead}, Handle: triage.AvailableActions},
		{Route: access.Route{Pattern: "GET /api/actions/log", Operation: "listActionLog", Roles: readers, Scope: identity.TriageRead}, Handle: triage.ActionLog},
		{Route: access.Route{Pattern: "POST /api/actions/retry/{log_id}", Operation: "retryAction", Roles: people, Scope: identity.ApprovalsDecide}, Handle: triage.ForAllTools(triage.RetryTag)},
		{Route: access.Route{Pattern: "POST /api/v1/triage/messages/{id}/follow-up", Operation: "changeTriageFollowUp", Roles: people, Scope: identity.MailRead}, MaxBody: one, Handle: triage.ForAllTools(request.WithBody(triage.ChangeFollowUp))},
		{Route: access.Route{Pattern: "POST /api/v1/triage/undo", Operation: "undoTriage", Roles: people, Scope: identity.ApprovalsDecide}, MaxBody: one, Handle: triage.ForAllTools(request.WithBody(triage.Undo))},

		{Route: access.Route{Pattern: "GET /api/v1/openapi.yaml", Operation: "getOpenAPI"}, Handle: getOpenAPI},
		{Route: access.Route{Pattern: "GET /api/v1/openapi.json", Operation: "getOpenAPIAsJSON"}, Handle: getOpenAPIAsJSON},
		{Route: access.Route{Pattern: "GET /healthz", Operation: "getHealth"}, Handle: getHealth},
		{Route: access.Route{Pattern: "GET /readyz", Operation: "getReadiness"}, Handle: getReadiness},
	}
}
