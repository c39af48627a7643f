package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// Change is the author and the time of a setting's last change. It is not
// sent.
type Change struct {
	Version   int64          `json:"version,omitzero"`
	UpdatedAt time.Time      `json:"updated_at,omitzero"`
	UpdatedBy envelope.Actor `json:"updated_by,omitzero"`
}

// Mode is the mode of the tools that a key matches.
type Mode struct {
	// Automation is empty for the organisation's mode.
	Automation string        `json:"automation_id,omitzero"`
	Tool       string        `json:"tool,omitzero"`
	Mode       envelope.Mode `json:"mode"`
	Change
	ETag string `json:"etag,omitzero"`
}

// Rule is a rule about arguments.
type Rule struct {
	ID string `json:"rule_id,omitzero"`
	// Automation is empty for rules for all automations.
	Automation string        `json:"automation_id,omitzero"`
	Tool       string        `json:"tool"`
	Expression string        `json:"expression"`
	Mode       envelope.Mode `json:"mode"`
	Reason     string        `json:"reason,omitzero"`
	Enabled    bool          `json:"enabled"`
	Change
	ETag string `json:"etag,omitzero"`
}

// GrantInput is a grant to make.
type GrantInput struct {
	// Key is the tool, as source:name.
	Tool string `json:"tool"`
	// Digest is the definition that the tool must have; empty is the current
	// one.
	Digest []byte `json:"digest,omitempty"`
	// Employee, Session and Automation narrow the grant; empty is any.
	Employee   envelope.EmployeeID `json:"employee_id,omitzero"`
	Session    string              `json:"session_id,omitzero"`
	Automation string              `json:"automation_id,omitzero"`
	// Pins are the arguments of the calls, by JSON Pointer. Others must be absent,
	// unless they are Loose.
	Pins map[string]json.RawMessage `json:"pins,omitempty"`
	// Loose are JSON Pointers to the arguments that may differ or be absent; the
	// empty pointer is all without a pin.
	Loose []string `json:"loose,omitempty"`
	// ExpiresIn is the lifetime; zero means the server's default.
	ExpiresIn envelope.Duration `json:"expires_in,omitzero"`
	Reason    string            `json:"reason,omitzero"`
}

// Grant allows calls of one tool that would otherwise need approval.
type Grant struct {
	ID         uuid.UUID           `json:"grant_id"`
	Tool       string              `json:"tool"`
	Digest     []byte              `json:"digest"`
	Employee   envelope.EmployeeID `json:"employee_id,omitzero"`
	Session    string              `json:"session_id,omitzero"`
	Automation string              `json:"automation_id,omitzero"`
	// Pins and Loose are the arguments that it holds: the empty pointer with the
	// arguments as a whole, without the loose ones. With the empty pointer loose, it
	// holds its pins and nothing else.
	Pins   map[string]json.RawMessage `json:"pins"`
	Loose  []string                   `json:"loose"`
	Reason string                     `json:"reason"`
	// From is the action whose approval made the grant; zero for none.
	From      envelope.ActionID `json:"from_action,omitzero"`
	CreatedAt time.Time         `json:"created_at"`
	CreatedBy envelope.Actor    `json:"created_by"`
	ExpiresAt time.Time         `json:"expires_at"`
	RevokedAt *time.Time        `json:"revoked_at,omitzero"`
	RevokedBy envelope.Actor    `json:"revoked_by,omitzero"`
	Version   int64             `json:"version"`
}

// GrantPreview is a grant that would be made, and the past calls that it would
// have allowed.
type GrantPreview struct {
	Tool       string                     `json:"tool"`
	Employee   envelope.EmployeeID        `json:"employee_id,omitzero"`
	Session    string                     `json:"session_id,omitzero"`
	Automation string                     `json:"automation_id,omitzero"`
	Pins       map[string]json.RawMessage `json:"pins"`
	Loose      []string                   `json:"loose"`
	ExpiresIn  envelope.Duration          `json:"expires_in"`
	// Since is the start of the range. Examined counts the past actions read, and
	// Complete reports whether these were all of the range; Compared counts the
	// calls of the tool among them, and Count those that would have been allowed.
	Since    time.Time `json:"since"`
	Examined int       `json:"examined"`
	Complete bool      `json:"complete"`
	Compared int       `json:"compared"`
	Count    int       `json:"count"`
	// Calls are the latest of these.
	Calls []PastCall `json:"calls"`
}

// PastCall is a call that was proposed before.
type PastCall struct {
	ActionID   envelope.ActionID `json:"action_id"`
	ProposedAt time.Time         `json:"proposed_at"`
	Args       json.RawMessage   `json:"args"`
	// ArgsPreview is the beginning of long arguments; Args is {} then.
	ArgsPreview string `json:"args_preview,omitzero"`
	ArgsCut     bool   `json:"args_cut,omitzero"`
}

// SessionMode is the mode of the tools that a key covers for one session.
type SessionMode struct {
	Session   string        `json:"session_id,omitzero"`
	Tool      string        `json:"tool,omitzero"`
	Mode      envelope.Mode `json:"mode"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"`
	// ExpiresIn is the lifetime, in a request.
	ExpiresIn envelope.Duration `json:"expires_in,omitzero"`
	Change
	ETag string `json:"etag,omitzero"`
}

// Preference switches the tools that a key covers off.
type Preference struct {
	// Employee limits it to one employee; zero is everybody.
	Employee envelope.EmployeeID `json:"employee_id,omitzero"`
	Tool     string              `json:"tool"`
	Change
	ETag string `json:"etag,omitzero"`
}

// Question is a call to explain.
type Question struct {
	// Tool is source:name.
	Tool string `json:"tool"`
	// Args are omitted to leave out rules about arguments.
	Args       json.RawMessage     `json:"args,omitempty"`
	Employee   envelope.EmployeeID `json:"employee_id,omitzero"`
	Session    string              `json:"session_id,omitzero"`
	Automation string              `json:"automation_id,omitzero"`
	Risk       envelope.Risk       `json:"risk,omitzero"`
	// Approval is required if the agent requests approval.
	Approval envelope.Approval `json:"approval,omitzero"`
}

// Explanation is the decision of policy, with the result of every layer.
type Explanation struct {
	Tool     string        `json:"tool"`
	Mode     envelope.Mode `json:"mode"`
	Source   string        `json:"mode_source"`
	Decision uuid.UUID     `json:"decision_id"`
	Version  int64         `json:"config_version"`
	Trace    []PolicyStep  `json:"trace"`
}

// MatrixRow is the decision of policy about any call of a tool, with the number
// of rules about arguments, reviews and grants that can apply to it.
type MatrixRow struct {
	Tool  string `json:"tool"`
	Title string `json:"title"`
	// Risk is read, write or danger.
	Risk   string        `json:"risk"`
	Mode   envelope.Mode `json:"mode"`
	Source string        `json:"mode_source"`
	// Trace has the layers with an answer, in order.
	Trace   []PolicyStep `json:"trace"`
	Rules   int          `json:"rules"`
	Reviews int          `json:"reviews"`
	Grants  int          `json:"grants"`
}

// Simulation is a range of the past on which a changed policy is tried.
type Simulation struct {
	// From and To bound when an action was proposed; a zero To is now.
	From time.Time `json:"since"`
	To   time.Time `json:"until,omitzero"`
	// Tool is a pattern; empty is all.
	Tool string `json:"tool,omitzero"`
	// Policy is a document whose sections replace the current ones.
	Policy json.RawMessage `json:"policy"`
	// Overrides are risks and effect classes of tools to try.
	Overrides []SimulatedOverride `json:"overrides,omitempty"`
	// Cursor is the NextCursor of the page before.
	Cursor string `json:"cursor,omitzero"`
	// Most is the number of actions that a page examines; zero means 2000.
	Most int `json:"limit,omitzero"`
}

// SimulatedOverride is the risk or the effect class of a tool to try; an empty
// field is unchanged.
type SimulatedOverride struct {
	Tool   string          `json:"tool"`
	Risk   string          `json:"risk,omitzero"`
	Effect envelope.Effect `json:"effect,omitzero"`
}

// SimulationPage is the result of a simulation for a part of the range.
type SimulationPage struct {
	// Version is that of the tenant's configuration. If it differs between two
	// pages, the current policy changed meanwhile.
	Version int64 `json:"config_version"`
	// Examined counts the examined actions, Compared those that were decided again, and
	// WithoutTool those left out because their tool no longer exists.
	Examined    int                    `json:"examined"`
	Compared    int                    `json:"compared"`
	WithoutTool int                    `json:"without_tool"`
	Counts      []SimulationCount      `json:"counts"`
	Differences []SimulationDifference `json:"differences"`
	NextCursor  *string                `json:"next_cursor"`
}

// SimulationCount counts the actions of a tool with the same three decisions.
type SimulationCount struct {
	Tool    string        `json:"tool"`
	Then    envelope.Mode `json:"then"`
	Now     envelope.Mode `json:"now"`
	Changed envelope.Mode `json:"changed"`
	// NowApprovals and ChangedApprovals are the required approvals if more than
	// one person must agree.
	NowApprovals     int `json:"now_approvals,omitzero"`
	ChangedApprovals int `json:"changed_approvals,omitzero"`
	Count            int `json:"count"`
}

// Differs reports whether the changed policy differs from the current one in
// mode or required approvals.
func (c SimulationCount) Differs() bool {
	return c.Now != c.Changed || c.NowApprovals != c.ChangedApprovals
}

// SimulationDifference is an action whose three decisions differ.
type SimulationDifference struct {
	Action     envelope.ActionID `json:"action_id"`
	ProposedAt time.Time         `json:"proposed_at"`
	Tool       string            `json:"tool"`
	Then       SimulatedDecision `json:"then"`
	Now        SimulatedDecision `json:"now"`
	Changed    SimulatedDecision `json:"changed"`
	// Causes are the layers that make Changed differ from Now.
	Causes []SimulationCause `json:"causes"`
}

// SimulatedDecision is a mode, and the layers that set or changed it.
type SimulatedDecision struct {
	Mode   envelope.Mode `json:"mode"`
	Source string        `json:"source"`
	// Approvals is the number of required approvals if more than one person must
	// agree.
	Approvals int `json:"approvals,omitzero"`
}

// Differs reports whether two policies differ in mode or required approvals.
func (d SimulatedDecision) Differs(other SimulatedDecision) bool {
	return d.Mode != other.Mode || d.Approvals != other.Approvals
}

// SimulationCause is the decision of one layer by the current policy and by the
// changed one; empty for nothing.
type SimulationCause struct {
	Layer   string        `json:"layer"`
	Rule    string        `json:"rule,omitzero"`
	Tool    string        `json:"tool,omitzero"`
	Now     envelope.Mode `json:"now,omitzero"`
	Changed envelope.Mode `json:"changed,omitzero"`
	Detail  string        `json:"detail,omitzero"`
}

// RuleCheck is an expression of a rule about arguments to check.
type RuleCheck struct {
	// Tool is the pattern of the rule.
	Tool       string `json:"tool"`
	Expression string `json:"expression"`
	// Automation is empty for rules for all automations.
	Automation string `json:"automation_id,omitzero"`
	// From bounds when the past actions were proposed; zero is 30 days ago.
	From time.Time `json:"since,omitzero"`
	// Most is the number of past actions examined; zero means 2000.
	Most int `json:"limit,omitzero"`
}

// RuleChecked is the result of a check.
type RuleChecked struct {
	Errors []ExpressionError `json:"errors"`
	// Variables and Arguments are the names that the expression may use.
	Variables []ExpressionName `json:"variables"`
	Arguments []ExpressionName `json:"arguments"`
	// Past is nil if there are errors.
	Past *RulePast `json:"past,omitempty"`
}

// ExpressionError is a mistake in an expression. Lines and columns count from 1,
// columns and the length in characters (Unicode code points). Line and Column are
// zero for a mistake of the whole expression.
type ExpressionError struct {
	Line    int    `json:"line,omitzero"`
	Column  int    `json:"column,omitzero"`
	Length  int    `json:"length"`
	Message string `json:"message"`
}

// ExpressionName is a name in expressions, with its type.
type ExpressionName struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// RulePast counts the past actions that a rule covers, by the result of its
// expression. A failed expression counts as true when policy decides.
type RulePast struct {
	// Since is the start of the range. Examined counts the past actions read, and
	// Complete reports whether these were all of the range; Compared counts those
	// that the rule covers.
	Since    time.Time `json:"since"`
	Examined int       `json:"examined"`
	Complete bool      `json:"complete"`
	Compared int       `json:"compared"`
	True     RuleCount `json:"matched"`
	False    RuleCount `json:"unmatched"`
	Failed   RuleCount `json:"failed"`
	// Reasons are those of the failures.
	Reasons []string `json:"reasons"`
}

// PolicyUsage counts the past actions to which rules about arguments applied,
// and which grants allowed.
type PolicyUsage struct {
	// Since is the start of the range. Examined counts the actions of the range,
	// and Complete reports whether it is the whole range that the server counts.
	Since    time.Time `json:"since"`
	Examined int       `json:"examined"`
	Complete bool      `json:"complete"`
	// Rules and Grants omit those without an action.
	Rules  []Usage `json:"rules"`
	Grants []Usage `json:"grants"`
}

// Usage counts the past actions of a rule or a grant.
type Usage struct {
	ID     string    `json:"id"`
	Count  int       `json:"count"`
	LastAt time.Time `json:"last_at"`
}

// RuleCount counts actions; Actions are the latest of them.
type RuleCount struct {
	Count   int                 `json:"count"`
	Actions []envelope.ActionID `json:"actions"`
}
