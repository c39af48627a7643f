package wire

// ProblemCode is a stable word for a problem. More may be added: treat an
// unknown code as the problem's type.
type ProblemCode string

// The codes that repeat the last word of the problem's type.
const (
	CodeBusy                 ProblemCode = "busy"
	CodeConflict             ProblemCode = "conflict"
	CodeDenied               ProblemCode = "denied"
	CodeExecutionFailed      ProblemCode = "execution_failed"
	CodeGone                 ProblemCode = "gone"
	CodeInternal             ProblemCode = "internal"
	CodeInvalid              ProblemCode = "invalid"
	CodeLimited              ProblemCode = "limited"
	CodeMethodNotAllowed     ProblemCode = "method_not_allowed"
	CodeNotFound             ProblemCode = "not_found"
	CodePreconditionFailed   ProblemCode = "precondition_failed"
	CodePreconditionRequired ProblemCode = "precondition_required"
	CodeTooLarge             ProblemCode = "too_large"
	CodeUnauthorized         ProblemCode = "unauthorized"
	CodeUnsupportedMediaType ProblemCode = "unsupported_media_type"
)

// The codes of missing rights.
const (
	// CodeAccountDisabled means that the person is disabled here.
	CodeAccountDisabled ProblemCode = "account_disabled"
	// CodeAgentToken means that an agent's token opens no session.
	CodeAgentToken ProblemCode = "agent_token"
	// CodeCrossSite means that a page of another site made the request.
	CodeCrossSite ProblemCode = "cross_site"
	// CodeIssuerUnavailable means that the issuer of a login does not answer.
	CodeIssuerUnavailable ProblemCode = "issuer_unavailable"
	// CodeLastOwner means that the change would remove the tenant's last owner.
	CodeLastOwner ProblemCode = "last_owner"
	// CodeLoginExpired means that a login took too long, or began in another
	// browser.
	CodeLoginExpired ProblemCode = "login_expired"
	// CodeLoginRefused means that the issuer refused a login, or its answer is
	// not valid.
	CodeLoginRefused ProblemCode = "login_refused"
	// CodeLoosens means that the change takes an administrator with policy:write.
	CodeLoosens ProblemCode = "loosens"
	// CodeNoDomain means that the account's e-mail domain may not log in.
	CodeNoDomain ProblemCode = "no_domain"
	// CodeNoPublicURL means that the service's public address is not configured:
	// set COUNTERSIGN_PUBLIC_URL.
	CodeNoPublicURL ProblemCode = "no_public_url"
	// CodeNoRole means that the account has no role here.
	CodeNoRole ProblemCode = "no_role"
	// CodeNoSession means that the operation takes a session, not a token.
	CodeNoSession ProblemCode = "no_session"
	// CodeNoToken means that the operation takes a token, not a session.
	CodeNoToken ProblemCode = "no_token"
	// CodeRole means that the operation takes another role.
	CodeRole ProblemCode = "role"
	// CodeScope means that the operation takes a scope that the token lacks.
	CodeScope ProblemCode = "scope"
	// CodeSessionEnded means that the session in the browser is over: log in again.
	CodeSessionEnded ProblemCode = "session_ended"
	// CodeTools means that the token is for other tools.
	CodeTools ProblemCode = "tools"
	// CodeTwoCredentials means that the request has a token and a session: send one
	// of them.
	CodeTwoCredentials ProblemCode = "two_credentials"
)

// The codes of actions and decisions.
const (
	// CodeDecided means that the action no longer waits for a decision; detail names
	// the outcome, who decided and when.
	CodeDecided ProblemCode = "decided"
	// CodeDrift means that the tool, or the address of its source, changed after the
	// proposal.
	CodeDrift ProblemCode = "drift"
	// CodeExpired means that the time to decide is over.
	CodeExpired ProblemCode = "expired"
	// CodeExternalIDTaken means that another envelope has the external_id, perhaps
	// one that you may not see; choose another, or give each agent's token a prefix.
	CodeExternalIDTaken ProblemCode = "external_id_taken"
	// CodeMayHaveHappened means that the action may have had its effect.
	CodeMayHaveHappened ProblemCode = "may_have_happened"
	// CodeOwnEdit means that the same person edited the arguments, and a review rule
	// requires another one.
	CodeOwnEdit ProblemCode = "own_edit"
	// CodeOwnProposal means that the same person proposed the action: another one
	// must decide.
	CodeOwnProposal ProblemCode = "own_proposal"
	// CodePlan means that the plan of a dry run no longer holds: make another one.
	CodePlan ProblemCode = "plan"
	// CodePolicyDenied means that policy denies the action.
	CodePolicyDenied ProblemCode = "policy_denied"
	// CodeStale means that the resource changed since it was read: read it again.
	CodeStale ProblemCode = "stale"
	// CodeToolGone means that the source no longer has the tool.
	CodeToolGone ProblemCode = "tool_gone"
	// CodeUnreadable means that the action's stored arguments cannot be read.
	CodeUnreadable ProblemCode = "unreadable"
	// CodeVoted means that the person has voted on the action already.
	CodeVoted ProblemCode = "voted"
)

// ProblemCodes returns every code, in the order of their names.
func ProblemCodes() []ProblemCode {
	return []ProblemCode{
		CodeAccountDisabled, CodeAgentToken, CodeBusy, CodeConflict, CodeCrossSite, CodeDecided, CodeDenied, CodeDrift, CodeExecutionFailed,
		CodeExpired, CodeExternalIDTaken, CodeGone, CodeInternal, CodeInvalid, CodeIssuerUnavailable, CodeLastOwner, CodeLimited,
		CodeLoginExpired, CodeLoginRefused, CodeLoosens, CodeMayHaveHappened, CodeMethodNotAllowed, CodeNoDomain, CodeNoPublicURL,
		CodeNoRole, CodeNoSession, CodeNoToken, CodeNotFound, CodeOwnEdit, CodeOwnProposal, CodePlan, CodePolicyDenied,
		CodePreconditionFailed, CodePreconditionRequired, CodeRole, CodeScope, CodeSessionEnded, CodeStale, CodeTooLarge, CodeToolGone,
		CodeTools, CodeTwoCredentials, CodeUnauthorized, CodeUnreadable, CodeUnsupportedMediaType, CodeVoted,
	}
}
