package wire

// ProblemCode is a stable word for a problem. More may come: take one that you
// do not know for the problem's type.
type ProblemCode string

// The codes that are the same as the last word of the problem's type: nothing more
// exact is known.
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

// The codes of who may do what.
const (
	// CodeAccountDisabled is of a person who is disabled here.
	CodeAccountDisabled ProblemCode = "account_disabled"
	// CodeAgentToken is of an agent's token where a person's is needed.
	CodeAgentToken ProblemCode = "agent_token"
	// CodeCrossSite is of a request that a page of another site made.
	CodeCrossSite ProblemCode = "cross_site"
	// CodeIssuerUnavailable is of an issuer that does not answer.
	CodeIssuerUnavailable ProblemCode = "issuer_unavailable"
	// CodeLastOwner is of a change that would take the last owner away.
	CodeLastOwner ProblemCode = "last_owner"
	// CodeLoginExpired is of a login that took too long, or began in another
	// browser.
	CodeLoginExpired ProblemCode = "login_expired"
	// CodeLoginRefused is of a login that the issuer refused, or answered with what
	// is not valid.
	CodeLoginRefused ProblemCode = "login_refused"
	// CodeLoosens is of a change that takes the scope policy:write.
	CodeLoosens ProblemCode = "loosens"
	// CodeNoDomain is of an account of an e-mail domain that may not log in.
	CodeNoDomain ProblemCode = "no_domain"
	// CodeNoPublicURL is of a service that does not know its own address.
	CodeNoPublicURL ProblemCode = "no_public_url"
	// CodeNoRole is of an account that has no role here.
	CodeNoRole ProblemCode = "no_role"
	// CodeNoSession is of a request that needs a session, and showed a token.
	CodeNoSession ProblemCode = "no_session"
	// CodeNoToken is of a request that needs a token, and showed a session.
	CodeNoToken ProblemCode = "no_token"
	// CodeRole is of an operation that takes another role.
	CodeRole ProblemCode = "role"
	// CodeScope is of an operation that takes a scope that the token lacks.
	CodeScope ProblemCode = "scope"
	// CodeSessionEnded is of a session in a browser that is over.
	CodeSessionEnded ProblemCode = "session_ended"
	// CodeTools is of a token that is for other tools.
	CodeTools ProblemCode = "tools"
	// CodeTwoCredentials is of a request with a token and a session.
	CodeTwoCredentials ProblemCode = "two_credentials"
)

// The codes of actions and decisions.
const (
	// CodeDecided is of an action that does not wait for a decision any more.
	CodeDecided ProblemCode = "decided"
	// CodeDrift is of an action whose tool, or the address of its source, changed
	// after it was proposed.
	CodeDrift ProblemCode = "drift"
	// CodeExpired is of an action that the time to decide is over for.
	CodeExpired ProblemCode = "expired"
	// CodeExternalIDTaken is of a proposal whose name another one has.
	CodeExternalIDTaken ProblemCode = "external_id_taken"
	// CodeMayHaveHappened is of an action that may have had its effect.
	CodeMayHaveHappened ProblemCode = "may_have_happened"
	// CodeOwnEdit is of a decision about arguments that the same person edited.
	CodeOwnEdit ProblemCode = "own_edit"
	// CodeOwnProposal is of a decision about the same person's proposal.
	CodeOwnProposal ProblemCode = "own_proposal"
	// CodePlan is of a plan that no longer holds.
	CodePlan ProblemCode = "plan"
	// CodePolicyDenied is of an action that policy denies.
	CodePolicyDenied ProblemCode = "policy_denied"
	// CodeStale is of a change or a decision about what has changed since it was
	// read.
	CodeStale ProblemCode = "stale"
	// CodeToolGone is of an action whose source no longer has its tool.
	CodeToolGone ProblemCode = "tool_gone"
	// CodeUnreadable is of an action whose stored arguments cannot be read.
	CodeUnreadable ProblemCode = "unreadable"
	// CodeVoted is of a person who has decided about the action already.
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
