package rest

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// route is a path and a method, and who may use it.
type route struct {
	// pattern is a pattern of http.ServeMux with a method.
	pattern string
	// operation names it in openapi.yaml.
	operation string
	// roles may use it; nil is everybody, without a token.
	roles []identity.Role
	// scope is the right that a token narrowed to some must have; every route
	// with roles has one, except getMe.
	scope identity.Scope
	// maxBody bounds the body in bytes.
	maxBody int64
	// parsed says that the body goes to a parser of its own, which is stricter
	// than the schema.
	parsed bool
	// endless says that it has no deadline of its own.
	endless bool
	// wait is how long it waits for an action's end unless told otherwise.
	wait   time.Duration
	handle func(*Server, *call) error
}

// admit says whether a caller may use the route: its role must be one of the
// route's and, if its token is narrowed to scopes, the route's among them; nor
// does one that is narrowed to tools look after what failed.
func (rt route) admit(by identity.Principal) error {
	if !slices.Contains(rt.roles, by.Role) {
		return fault.New(fault.Denied, "a token of the role %s may not do this; it takes the role %s", by.Role, rolesText(rt.roles))
	}
	if rt.scope != "" && !by.Has(rt.scope) {
		return fault.New(fault.Denied, "this needs the scope %s, which the token does not have", rt.scope)
	}
	// What failed is sent again in lots, of whatever tool.
	if rt.scope == identity.LettersManage && by.Tools != nil {
		return fault.New(fault.Denied, "the token is for some tools; this needs one that is for all")
	}
	return nil
}

// rolesText lists roles as a sentence does.
func rolesText(roles []identity.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r)
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// routes is the one list of what the API answers.
func routes() []route {
	all := []identity.Role{identity.RoleAgent, identity.RoleViewer, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	proposers := []identity.Role{identity.RoleAgent, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	readers := []identity.Role{identity.RoleViewer, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	people := []identity.Role{identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	admin := []identity.Role{identity.RoleAdmin, identity.RoleOwner}
	owner := []identity.Role{identity.RoleOwner}
	const one, many = envelope.MaxBytes, envelope.MaxManyBytes
	const contactBytes, limitsBytes = 8 << 20, 4 << 20
	const batchBytes, policyBytes = 4 << 20, 4 << 20
	return []route{
		{pattern: "POST /api/v1/actions", operation: "submitAction", roles: proposers, scope: identity.ActionsPropose, maxBody: one, parsed: true, handle: (*Server).submitAction},
		{pattern: "POST /api/v1/actions/batch", operation: "submitActions", roles: proposers, scope: identity.ActionsPropose, maxBody: many, parsed: true, handle: (*Server).submitActions},
		{pattern: "GET /api/v1/actions", operation: "listActions", roles: all, scope: identity.ActionsRead, handle: (*Server).listActions},
		{pattern: "GET /api/v1/actions/{id}", operation: "getAction", roles: all, scope: identity.ActionsRead, handle: (*Server).getAction},
		{pattern: "GET /api/v1/actions/{id}/attempts", operation: "listAttempts", roles: all, scope: identity.ActionsRead, handle: (*Server).listAttempts},
		{pattern: "GET /api/v1/actions/{id}/wait", operation: "waitForAction", roles: all, scope: identity.ActionsRead, wait: defaultWait, handle: (*Server).waitForAction},
		{pattern: "POST /api/v1/actions/{id}/approve", operation: "approveAction", roles: people, scope: identity.ApprovalsDecide, maxBody: one, handle: (*Server).approveAction},
		{pattern: "POST /api/v1/actions/{id}/deny", operation: "denyAction", roles: people, scope: identity.ApprovalsDecide, maxBody: one, handle: (*Server).denyAction},
		{pattern: "POST /api/v1/actions/{id}/edit", operation: "editAction", roles: people, scope: identity.ApprovalsDecide, maxBody: one, handle: (*Server).editAction},
		{pattern: "GET /api/v1/actions/{id}/votes", operation: "listVotes", roles: readers, scope: identity.ActionsRead, handle: (*Server).listVotes},
		{pattern: "POST /api/v1/actions/approve", operation: "approveActions", roles: people, scope: identity.ApprovalsDecide, maxBody: one, handle: (*Server).approveActions},
		{pattern: "POST /api/v1/actions/deny", operation: "denyActions", roles: people, scope: identity.ApprovalsDecide, maxBody: one, handle: (*Server).denyActions},
		{pattern: "POST /api/v1/actions/{id}/undo", operation: "undoAction", roles: proposers, scope: identity.ActionsPropose, handle: (*Server).undoAction},

		{pattern: "GET /api/v1/inbox", operation: "getInbox", roles: readers, scope: identity.ActionsRead, handle: (*Server).getInbox},
		{pattern: "GET /api/v1/reviews", operation: "listReviews", roles: readers, scope: identity.PolicyRead, handle: (*Server).listReviews},
		{pattern: "PUT /api/v1/reviews", operation: "putReview", roles: admin, scope: identity.PolicyWrite, maxBody: one, handle: (*Server).putReview},
		{pattern: "DELETE /api/v1/reviews", operation: "deleteReview", roles: admin, scope: identity.PolicyWrite, handle: (*Server).deleteReview},

		{pattern: "GET /api/v1/executions", operation: "listExecutions", roles: all, scope: identity.ActionsRead, handle: (*Server).listExecutions},
		{pattern: "GET /api/v1/executions/{id}", operation: "getExecution", roles: all, scope: identity.ActionsRead, handle: (*Server).getExecution},

		{pattern: "POST /api/v1/batches", operation: "submitBatch", roles: proposers, scope: identity.ActionsPropose, maxBody: batchBytes, wait: maxWait, handle: (*Server).submitBatch},
		{pattern: "GET /api/v1/batches", operation: "listBatches", roles: all, scope: identity.ActionsRead, handle: (*Server).listBatches},
		{pattern: "GET /api/v1/batches/{id}", operation: "getBatch", roles: all, scope: identity.ActionsRead, handle: (*Server).getBatch},
		{pattern: "POST /api/v1/batches/{id}/cancel", operation: "cancelBatch", roles: proposers, scope: identity.ActionsPropose, handle: (*Server).cancelBatch},
		{pattern: "POST /api/v1/batches/{id}/retry", operation: "retryBatch", roles: people, scope: identity.LettersManage, maxBody: one, handle: (*Server).retryBatch},
		{pattern: "POST /api/v1/batches/{id}/resolve", operation: "resolveBatch", roles: people, scope: identity.LettersManage, maxBody: one, handle: (*Server).resolveBatch},

		{pattern: "GET /api/v1/dead-letters", operation: "listDeadLetters", roles: readers, scope: identity.LettersRead, handle: (*Server).listDeadLetters},
		{pattern: "GET /api/v1/dead-letters/export", operation: "exportDeadLetters", roles: readers, scope: identity.LettersRead, handle: (*Server).exportDeadLetters},
		{pattern: "GET /api/v1/dead-letters/{id}", operation: "getDeadLetter", roles: readers, scope: identity.LettersRead, handle: (*Server).getDeadLetter},
		{pattern: "POST /api/v1/dead-letters/{id}/resolve", operation: "resolveDeadLetter", roles: people, scope: identity.LettersManage, maxBody: one, handle: (*Server).resolveDeadLetter},
		{pattern: "POST /api/v1/dead-letters/replay", operation: "replayDeadLetters", roles: people, scope: identity.LettersManage, maxBody: one, handle: (*Server).replayDeadLetters},
		{pattern: "POST /api/v1/dead-letters/discard", operation: "discardDeadLetters", roles: people, scope: identity.LettersManage, maxBody: one, handle: (*Server).discardDeadLetters},

		{pattern: "GET /api/v1/events", operation: "streamEvents", roles: all, scope: identity.ActionsRead, endless: true, handle: (*Server).streamEvents},

		{pattern: "GET /api/v1/subscriptions", operation: "listSubscriptions", roles: readers, scope: identity.SubscriptionsRead, handle: (*Server).listSubscriptions},
		{pattern: "PUT /api/v1/subscriptions/{name}", operation: "putSubscription", roles: admin, scope: identity.SubscriptionsWrite, maxBody: one, handle: (*Server).putSubscription},
		{pattern: "DELETE /api/v1/subscriptions/{name}", operation: "deleteSubscription", roles: admin, scope: identity.SubscriptionsWrite, handle: (*Server).deleteSubscription},
		{pattern: "POST /api/v1/subscriptions/{name}/test", operation: "testSubscription", roles: admin, scope: identity.SubscriptionsWrite, handle: (*Server).testSubscription},
		// Slack shows no token: it signs.
		{pattern: "POST /api/v1/slack/interactions/{subscription}", operation: "slackInteraction", maxBody: one, parsed: true, handle: (*Server).slackInteraction},

		{pattern: "GET /api/v1/tools", operation: "listTools", roles: all, scope: identity.CatalogRead, handle: (*Server).listTools},
		{pattern: "GET /api/v1/tools/{tool}", operation: "getTool", roles: all, scope: identity.CatalogRead, handle: (*Server).getTool},
		{pattern: "GET /api/v1/tools/diff", operation: "diffTool", roles: readers, scope: identity.CatalogRead, handle: (*Server).diffTool},
		{pattern: "PUT /api/v1/tools/metadata", operation: "describeTool", roles: people, scope: identity.CatalogWrite, maxBody: one, handle: (*Server).describeTool},
		{pattern: "POST /api/v1/tools/{tool}", operation: "invokeTool", roles: proposers, scope: identity.ActionsPropose, maxBody: one, wait: maxWait, handle: (*Server).invokeTool},
		{pattern: "GET /api/v1/tools/snapshots", operation: "listSnapshotRules", roles: readers, scope: identity.CatalogRead, handle: (*Server).listSnapshotRules},
		{pattern: "PUT /api/v1/tools/snapshots", operation: "putSnapshotRule", roles: people, scope: identity.CatalogWrite, maxBody: one, handle: (*Server).putSnapshotRule},
		{pattern: "POST /api/v1/tools/accept", operation: "acceptTool", roles: people, scope: identity.CatalogWrite, maxBody: one, handle: (*Server).acceptTool},
		{pattern: "PUT /api/v1/tools/overrides", operation: "configureTool", roles: people, scope: identity.CatalogWrite, maxBody: one, handle: (*Server).configureTool},
		{pattern: "PUT /api/v1/tools/rules", operation: "putToolRule", roles: people, scope: identity.CatalogWrite, maxBody: one, handle: (*Server).putToolRule},
		{pattern: "GET /api/v1/tools/verify", operation: "listVerifyRules", roles: readers, scope: identity.CatalogRead, handle: (*Server).listVerifyRules},
		{pattern: "PUT /api/v1/tools/verify", operation: "putVerifyRule", roles: people, scope: identity.CatalogWrite, maxBody: one, handle: (*Server).putVerifyRule},
		{pattern: "GET /api/v1/sources", operation: "listSources", roles: readers, scope: identity.CatalogRead, handle: (*Server).listSources},
		{pattern: "PUT /api/v1/sources/{id}", operation: "putSource", roles: admin, scope: identity.CatalogWrite, maxBody: one, handle: (*Server).putSource},
		{pattern: "POST /api/v1/sources/{id}/refresh", operation: "refreshSource", roles: people, scope: identity.CatalogWrite, handle: (*Server).refreshSource},
		{pattern: "DELETE /api/v1/sources/{id}", operation: "deleteSource", roles: admin, scope: identity.CatalogWrite, handle: (*Server).deleteSource},
		{pattern: "GET /api/v1/policy", operation: "getPolicy", roles: readers, scope: identity.PolicyRead, handle: (*Server).getPolicy},
		{pattern: "PUT /api/v1/policy", operation: "putPolicy", roles: admin, scope: identity.PolicyWrite, maxBody: policyBytes, handle: (*Server).putPolicy},
		{pattern: "POST /api/v1/policy/simulate", operation: "simulatePolicy", roles: readers, scope: identity.PolicyRead, maxBody: policyBytes, handle: (*Server).simulate},
		{pattern: "GET /api/v1/policy/modes", operation: "listModes", roles: readers, scope: identity.PolicyRead, handle: (*Server).listModes},
		{pattern: "PUT /api/v1/policy/modes", operation: "putMode", roles: admin, scope: identity.PolicyWrite, maxBody: one, handle: (*Server).putMode},
		{pattern: "DELETE /api/v1/policy/modes", operation: "deleteMode", roles: admin, scope: identity.PolicyWrite, handle: (*Server).deleteMode},
		{pattern: "GET /api/v1/policy/rules", operation: "listRules", roles: readers, scope: identity.PolicyRead, handle: (*Server).listRules},
		{pattern: "PUT /api/v1/policy/rules/{id}", operation: "putRule", roles: admin, scope: identity.PolicyWrite, maxBody: one, handle: (*Server).putRule},
		{pattern: "DELETE /api/v1/policy/rules/{id}", operation: "deleteRule", roles: admin, scope: identity.PolicyWrite, handle: (*Server).deleteRule},
		{pattern: "GET /api/v1/policy/grants", operation: "listGrants", roles: readers, scope: identity.PolicyRead, handle: (*Server).listGrants},
		{pattern: "POST /api/v1/policy/grants", operation: "makeGrant", roles: admin, scope: identity.PolicyWrite, maxBody: one, handle: (*Server).makeGrant},
		{pattern: "DELETE /api/v1/policy/grants/{id}", operation: "revokeGrant", roles: people, scope: identity.PolicyWrite, handle: (*Server).revokeGrant},
		{pattern: "GET /api/v1/policy/sessions", operation: "listSessionModes", roles: readers, scope: identity.PolicyRead, handle: (*Server).listSessionModes},
		{pattern: "PUT /api/v1/policy/sessions", operation: "putSessionMode", roles: admin, scope: identity.PolicyWrite, maxBody: one, handle: (*Server).putSessionMode},
		{pattern: "DELETE /api/v1/policy/sessions", operation: "deleteSessionMode", roles: admin, scope: identity.PolicyWrite, handle: (*Server).deleteSessionMode},
		{pattern: "POST /api/v1/policy/explain", operation: "explainPolicy", roles: readers, scope: identity.PolicyRead, maxBody: one, handle: (*Server).explain},
		{pattern: "GET /api/v1/preferences", operation: "listPreferences", roles: all, scope: identity.PolicyRead, handle: (*Server).listPreferences},
		{pattern: "PUT /api/v1/preferences", operation: "putPreference", roles: people, scope: identity.PolicyWrite, maxBody: one, handle: (*Server).putPreference},
		{pattern: "DELETE /api/v1/preferences", operation: "deletePreference", roles: people, scope: identity.PolicyWrite, handle: (*Server).deletePreference},

		{pattern: "GET /api/v1/guide", operation: "getGuide", roles: all, scope: identity.CatalogRead, handle: (*Server).getGuide},
		{pattern: "GET /api/v1/notes", operation: "listNotes", roles: readers, scope: identity.ActionsRead, handle: (*Server).listNotes},

		{pattern: "GET /api/v1/bucket-names", operation: "listBucketNames", roles: all, scope: identity.LimitsRead, handle: (*Server).listBucketNames},
		{pattern: "GET /api/v1/buckets", operation: "listBuckets", roles: readers, scope: identity.LimitsRead, handle: (*Server).listBuckets},
		{pattern: "GET /api/v1/buckets/{name}", operation: "getBucket", roles: readers, scope: identity.LimitsRead, handle: (*Server).getBucket},
		{pattern: "PUT /api/v1/buckets/{name}", operation: "putBucket", roles: admin, scope: identity.LimitsWrite, maxBody: one, handle: (*Server).putBucket},
		{pattern: "DELETE /api/v1/buckets/{name}", operation: "retireBucket", roles: admin, scope: identity.LimitsWrite, handle: (*Server).retireBucket},
		{pattern: "POST /api/v1/buckets/{name}/reopen", operation: "reopenBucket", roles: people, scope: identity.LimitsWrite, handle: (*Server).reopenBucket},
		{pattern: "GET /api/v1/quiet-hours", operation: "listQuietHours", roles: readers, scope: identity.LimitsRead, handle: (*Server).listQuietHours},
		{pattern: "PUT /api/v1/quiet-hours", operation: "putQuietHours", roles: admin, scope: identity.LimitsWrite, maxBody: one, handle: (*Server).putQuietHours},
		{pattern: "DELETE /api/v1/quiet-hours", operation: "deleteQuietHours", roles: admin, scope: identity.LimitsWrite, handle: (*Server).deleteQuietHours},
		{pattern: "GET /api/v1/do-not-contact", operation: "listDoNotContact", roles: readers, scope: identity.ContactsRead, handle: (*Server).listDoNotContact},
		{pattern: "POST /api/v1/do-not-contact", operation: "addDoNotContact", roles: people, scope: identity.ContactsWrite, maxBody: contactBytes, handle: (*Server).addDoNotContact},
		{pattern: "POST /api/v1/do-not-contact/remove", operation: "removeDoNotContact", roles: admin, scope: identity.ContactsWrite, maxBody: contactBytes, handle: (*Server).removeDoNotContact},
		{pattern: "POST /api/v1/do-not-contact/import", operation: "importDoNotContact", roles: admin, scope: identity.ContactsWrite, maxBody: contactBytes, parsed: true, handle: (*Server).importDoNotContact},
		{pattern: "GET /api/v1/do-not-contact/export", operation: "exportDoNotContact", roles: readers, scope: identity.ContactsRead, endless: true, handle: (*Server).exportDoNotContact},
		{pattern: "GET /api/v1/employees", operation: "listEmployees", roles: readers, scope: identity.LimitsRead, handle: (*Server).listEmployees},
		{pattern: "PUT /api/v1/employees/{id}", operation: "putEmployee", roles: admin, scope: identity.LimitsWrite, maxBody: one, handle: (*Server).putEmployee},
		{pattern: "DELETE /api/v1/employees/{id}", operation: "deleteEmployee", roles: admin, scope: identity.LimitsWrite, handle: (*Server).deleteEmployee},
		{pattern: "GET /api/v1/pauses", operation: "listPauses", roles: readers, scope: identity.LimitsRead, handle: (*Server).listPauses},
		{pattern: "POST /api/v1/pauses", operation: "pause", roles: people, scope: identity.PausesWrite, maxBody: one, handle: (*Server).pause},
		{pattern: "DELETE /api/v1/pauses", operation: "resume", roles: people, scope: identity.PausesWrite, handle: (*Server).resume},
		{pattern: "GET /api/v1/breakers", operation: "listBreakers", roles: readers, scope: identity.LimitsRead, handle: (*Server).listBreakers},
		{pattern: "POST /api/v1/breakers/{id}/reset", operation: "resetBreaker", roles: people, scope: identity.LimitsWrite, handle: (*Server).resetBreaker},
		{pattern: "GET /api/v1/settings", operation: "getSettings", roles: readers, scope: identity.LimitsRead, handle: (*Server).getSettings},
		{pattern: "PUT /api/v1/settings", operation: "putSettings", roles: admin, scope: identity.LimitsWrite, maxBody: one, handle: (*Server).putSettings},
		{pattern: "GET /api/v1/limits", operation: "getLimits", roles: readers, scope: identity.LimitsRead, handle: (*Server).getLimits},
		{pattern: "PUT /api/v1/limits", operation: "putLimits", roles: admin, scope: identity.LimitsWrite, maxBody: limitsBytes, handle: (*Server).putLimits},

		{pattern: "GET /api/v1/me", operation: "getMe", roles: all, handle: (*Server).getMe},
		{pattern: "GET /api/v1/tokens", operation: "listTokens", roles: admin, scope: identity.TokensManage, handle: (*Server).listTokens},
		{pattern: "POST /api/v1/tokens", operation: "issueToken", roles: admin, scope: identity.TokensManage, maxBody: one, handle: (*Server).issueToken},
		{pattern: "POST /api/v1/tokens/{id}/rotate", operation: "rotateToken", roles: admin, scope: identity.TokensManage, maxBody: one, handle: (*Server).rotateToken},
		{pattern: "DELETE /api/v1/tokens/{id}", operation: "revokeToken", roles: admin, scope: identity.TokensManage, handle: (*Server).revokeToken},
		{pattern: "GET /api/v1/operators", operation: "listOperators", roles: admin, scope: identity.OperatorsManage, handle: (*Server).listOperators},
		{pattern: "POST /api/v1/operators", operation: "createOperator", roles: admin, scope: identity.OperatorsManage, maxBody: one, handle: (*Server).createOperator},
		{pattern: "PUT /api/v1/operators/{id}", operation: "putOperator", roles: admin, scope: identity.OperatorsManage, maxBody: one, handle: (*Server).putOperator},
		{pattern: "GET /api/v1/identity-providers", operation: "listProviders", roles: admin, scope: identity.OperatorsManage, handle: (*Server).listProviders},
		{pattern: "PUT /api/v1/identity-providers/{id}", operation: "putProvider", roles: owner, scope: identity.OperatorsManage, maxBody: one, handle: (*Server).putProvider},
		{pattern: "DELETE /api/v1/identity-providers/{id}", operation: "deleteProvider", roles: owner, scope: identity.OperatorsManage, handle: (*Server).deleteProvider},

		{pattern: "GET /api/v1/audit/verify", operation: "verifyAudit", roles: readers, scope: identity.AuditRead, handle: (*Server).verifyAudit},
		{pattern: "GET /api/v1/audit/events", operation: "exportAudit", roles: readers, scope: identity.AuditRead, endless: true, handle: (*Server).exportAudit},
		{pattern: "GET /api/v1/retention", operation: "listRetention", roles: readers, scope: identity.AuditRead, handle: (*Server).listRetention},
		{pattern: "PUT /api/v1/retention", operation: "putRetention", roles: admin, scope: identity.AuditWrite, maxBody: one, handle: (*Server).putRetention},

		{pattern: "GET /api/v1/overview", operation: "getOverview", roles: readers, scope: identity.ActionsRead, handle: (*Server).getOverview},

		{pattern: "GET /api/v1/openapi.yaml", operation: "getOpenAPI", handle: (*Server).getOpenAPI},
		{pattern: "GET /api/v1/openapi.json", operation: "getOpenAPIAsJSON", handle: (*Server).getOpenAPIAsJSON},
		{pattern: "GET /healthz", operation: "getHealth", handle: (*Server).getHealth},
		{pattern: "GET /readyz", operation: "getReadiness", handle: (*Server).getReadiness},
		{pattern: "GET /metrics", operation: "getMetrics", handle: (*Server).getMetrics},
	}
}
