package api

import (
	"slices"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/identity"
)

// route is a path and a method, and who may use it.
type route struct {
	// pattern is a pattern of http.ServeMux with a method.
	pattern string
	// operation names it in openapi.yaml.
	operation string
	// roles may use it; nil is everybody, without a token.
	roles []identity.Role
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

func (rt route) admits(role identity.Role) bool { return slices.Contains(rt.roles, role) }

// routes is the one list of what the API answers.
func routes() []route {
	all := []identity.Role{identity.RoleAgent, identity.RoleViewer, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	proposers := []identity.Role{identity.RoleAgent, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	readers := []identity.Role{identity.RoleViewer, identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	people := []identity.Role{identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner}
	admin := []identity.Role{identity.RoleAdmin, identity.RoleOwner}
	const one, many = envelope.MaxBytes, envelope.MaxManyBytes
	const contactBytes, limitsBytes = 8 << 20, 4 << 20
	return []route{
		{pattern: "POST /api/v1/actions", operation: "submitAction", roles: proposers, maxBody: one, parsed: true, handle: (*Server).submitAction},
		{pattern: "POST /api/v1/actions/batch", operation: "submitActions", roles: proposers, maxBody: many, parsed: true, handle: (*Server).submitActions},
		{pattern: "GET /api/v1/actions", operation: "listActions", roles: all, handle: (*Server).listActions},
		{pattern: "GET /api/v1/actions/{id}", operation: "getAction", roles: all, handle: (*Server).getAction},
		{pattern: "GET /api/v1/actions/{id}/attempts", operation: "listAttempts", roles: all, handle: (*Server).listAttempts},
		{pattern: "GET /api/v1/actions/{id}/wait", operation: "waitForAction", roles: all, wait: defaultWait, handle: (*Server).waitForAction},
		{pattern: "POST /api/v1/actions/{id}/approve", operation: "approveAction", roles: people, maxBody: one, handle: (*Server).approveAction},
		{pattern: "POST /api/v1/actions/{id}/deny", operation: "denyAction", roles: people, maxBody: one, handle: (*Server).denyAction},
		{pattern: "POST /api/v1/actions/{id}/undo", operation: "undoAction", roles: proposers, handle: (*Server).undoAction},

		{pattern: "GET /api/v1/dead-letters", operation: "listDeadLetters", roles: readers, handle: (*Server).listDeadLetters},
		{pattern: "GET /api/v1/dead-letters/export", operation: "exportDeadLetters", roles: readers, handle: (*Server).exportDeadLetters},
		{pattern: "GET /api/v1/dead-letters/{id}", operation: "getDeadLetter", roles: readers, handle: (*Server).getDeadLetter},
		{pattern: "POST /api/v1/dead-letters/{id}/resolve", operation: "resolveDeadLetter", roles: people, maxBody: one, handle: (*Server).resolveDeadLetter},
		{pattern: "POST /api/v1/dead-letters/replay", operation: "replayDeadLetters", roles: people, maxBody: one, handle: (*Server).replayDeadLetters},
		{pattern: "POST /api/v1/dead-letters/discard", operation: "discardDeadLetters", roles: people, maxBody: one, handle: (*Server).discardDeadLetters},

		{pattern: "GET /api/v1/events", operation: "streamEvents", roles: all, endless: true, handle: (*Server).streamEvents},

		{pattern: "GET /api/v1/tools", operation: "listTools", roles: all, handle: (*Server).listTools},
		{pattern: "POST /api/v1/tools/accept", operation: "acceptTool", roles: people, maxBody: one, handle: (*Server).acceptTool},
		{pattern: "PUT /api/v1/tools/overrides", operation: "configureTool", roles: people, maxBody: one, handle: (*Server).configureTool},
		{pattern: "PUT /api/v1/tools/rules", operation: "putToolRule", roles: people, maxBody: one, handle: (*Server).putToolRule},
		{pattern: "GET /api/v1/tools/verify", operation: "listVerifyRules", roles: readers, handle: (*Server).listVerifyRules},
		{pattern: "PUT /api/v1/tools/verify", operation: "putVerifyRule", roles: people, maxBody: one, handle: (*Server).putVerifyRule},
		{pattern: "GET /api/v1/sources", operation: "listSources", roles: readers, handle: (*Server).listSources},
		{pattern: "PUT /api/v1/sources/{id}", operation: "putSource", roles: admin, maxBody: one, handle: (*Server).putSource},
		{pattern: "DELETE /api/v1/sources/{id}", operation: "deleteSource", roles: admin, handle: (*Server).deleteSource},
		{pattern: "GET /api/v1/policy/modes", operation: "listModes", roles: readers, handle: (*Server).listModes},
		{pattern: "PUT /api/v1/policy/modes", operation: "putMode", roles: admin, maxBody: one, handle: (*Server).putMode},
		{pattern: "DELETE /api/v1/policy/modes", operation: "deleteMode", roles: admin, handle: (*Server).deleteMode},

		{pattern: "GET /api/v1/bucket-names", operation: "listBucketNames", roles: all, handle: (*Server).listBucketNames},
		{pattern: "GET /api/v1/buckets", operation: "listBuckets", roles: readers, handle: (*Server).listBuckets},
		{pattern: "GET /api/v1/buckets/{name}", operation: "getBucket", roles: readers, handle: (*Server).getBucket},
		{pattern: "PUT /api/v1/buckets/{name}", operation: "putBucket", roles: admin, maxBody: one, handle: (*Server).putBucket},
		{pattern: "DELETE /api/v1/buckets/{name}", operation: "retireBucket", roles: admin, handle: (*Server).retireBucket},
		{pattern: "POST /api/v1/buckets/{name}/reopen", operation: "reopenBucket", roles: people, handle: (*Server).reopenBucket},
		{pattern: "GET /api/v1/quiet-hours", operation: "listQuietHours", roles: readers, handle: (*Server).listQuietHours},
		{pattern: "PUT /api/v1/quiet-hours", operation: "putQuietHours", roles: admin, maxBody: one, handle: (*Server).putQuietHours},
		{pattern: "DELETE /api/v1/quiet-hours", operation: "deleteQuietHours", roles: admin, handle: (*Server).deleteQuietHours},
		{pattern: "GET /api/v1/do-not-contact", operation: "listDoNotContact", roles: readers, handle: (*Server).listDoNotContact},
		{pattern: "POST /api/v1/do-not-contact", operation: "addDoNotContact", roles: people, maxBody: contactBytes, handle: (*Server).addDoNotContact},
		{pattern: "POST /api/v1/do-not-contact/remove", operation: "removeDoNotContact", roles: admin, maxBody: contactBytes, handle: (*Server).removeDoNotContact},
		{pattern: "POST /api/v1/do-not-contact/import", operation: "importDoNotContact", roles: admin, maxBody: contactBytes, parsed: true, handle: (*Server).importDoNotContact},
		{pattern: "GET /api/v1/do-not-contact/export", operation: "exportDoNotContact", roles: readers, endless: true, handle: (*Server).exportDoNotContact},
		{pattern: "GET /api/v1/employees", operation: "listEmployees", roles: readers, handle: (*Server).listEmployees},
		{pattern: "PUT /api/v1/employees/{id}", operation: "putEmployee", roles: admin, maxBody: one, handle: (*Server).putEmployee},
		{pattern: "DELETE /api/v1/employees/{id}", operation: "deleteEmployee", roles: admin, handle: (*Server).deleteEmployee},
		{pattern: "GET /api/v1/pauses", operation: "listPauses", roles: readers, handle: (*Server).listPauses},
		{pattern: "POST /api/v1/pauses", operation: "pause", roles: people, maxBody: one, handle: (*Server).pause},
		{pattern: "DELETE /api/v1/pauses", operation: "resume", roles: people, handle: (*Server).resume},
		{pattern: "GET /api/v1/breakers", operation: "listBreakers", roles: readers, handle: (*Server).listBreakers},
		{pattern: "POST /api/v1/breakers/{id}/reset", operation: "resetBreaker", roles: people, handle: (*Server).resetBreaker},
		{pattern: "GET /api/v1/settings", operation: "getSettings", roles: readers, handle: (*Server).getSettings},
		{pattern: "PUT /api/v1/settings", operation: "putSettings", roles: admin, maxBody: one, handle: (*Server).putSettings},
		{pattern: "GET /api/v1/limits", operation: "getLimits", roles: readers, handle: (*Server).getLimits},
		{pattern: "PUT /api/v1/limits", operation: "putLimits", roles: admin, maxBody: limitsBytes, handle: (*Server).putLimits},

		{pattern: "POST /api/v1/tokens", operation: "issueToken", roles: admin, maxBody: one, handle: (*Server).issueToken},
		{pattern: "DELETE /api/v1/tokens/{id}", operation: "revokeToken", roles: admin, handle: (*Server).revokeToken},

		{pattern: "GET /api/v1/audit/verify", operation: "verifyAudit", roles: readers, handle: (*Server).verifyAudit},
		{pattern: "GET /api/v1/audit/events", operation: "exportAudit", roles: readers, endless: true, handle: (*Server).exportAudit},
		{pattern: "GET /api/v1/retention", operation: "listRetention", roles: readers, handle: (*Server).listRetention},
		{pattern: "PUT /api/v1/retention", operation: "putRetention", roles: admin, maxBody: one, handle: (*Server).putRetention},

		{pattern: "GET /api/v1/overview", operation: "getOverview", roles: readers, handle: (*Server).getOverview},

		{pattern: "GET /api/v1/openapi.yaml", operation: "getOpenAPI", handle: (*Server).getOpenAPI},
		{pattern: "GET /healthz", operation: "getHealth", handle: (*Server).getHealth},
		{pattern: "GET /readyz", operation: "getReadiness", handle: (*Server).getReadiness},
		{pattern: "GET /metrics", operation: "getMetrics", handle: (*Server).getMetrics},
	}
}
