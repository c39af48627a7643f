package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
)

// The layers, by their names in traces and sources, in the order of evaluation.
const (
	// LayerAutomation is a base layer: the rules of the proposal's automation.
	LayerAutomation = "automation_override"
	// LayerOrganisation is a base layer: the rules of the tenant.
	LayerOrganisation = "org_default"
	// LayerInferred is the last base layer: the mode inferred from the tool's
	// risk. It always has a result.
	LayerInferred = "inferred_default"
	// LayerAsked narrows: the agent requested a person's approval.
	LayerAsked = "asked_approval"
	// LayerDrift narrows: the tool's definition is not the accepted
	// one.
	LayerDrift = "drift"
	// LayerTrust narrows: the risk is above the employee's trust.
	LayerTrust = "trust"
	// LayerScopes narrows: the employee lacks a scope that the tool needs.
	LayerScopes = "scopes"
	// LayerDoNotContact narrows: a recipient in the arguments is on the tenant's
	// do-not-contact list.
	LayerDoNotContact = "do_not_contact"
	// LayerArguments narrows: rules about the arguments. It has a step for every
	// rule that applies, or an empty one.
	LayerArguments = "arguments"
	// LayerSession narrows: the modes of the session, until they expire.
	LayerSession = "session_capability"
	// LayerPreference narrows: users switched the tool off.
	LayerPreference = "user_preference"
	// LayerToken narrows: the proposer's token does not cover the tool.
	LayerToken = "token_scope"
	// LayerQuarantine narrows: the tool is new and not accepted yet.
	LayerQuarantine = "quarantine"
	// LayerPerson narrows: the tool never runs without a person's approval, of the
	// call or, for some tools, by a grant.
	LayerPerson = "always_person"
	// LayerGrant is last and the only layer that loosens: it allows an action
	// that would need approval, because a person approved it in advance.
	LayerGrant = "grant"
)

// The sources of a decision that no layer could make. The first three are
// followed by the value, truncated to 40 printable characters.
const (
	// SourceUnknownMode means that the mode of the rule is invalid.
	SourceUnknownMode = "unknown_mode:"
	// SourceUnknownKey means that the key of a rule is invalid.
	SourceUnknownKey = "unknown_key:"
	// SourceUnknownRisk means that no rule applies and the tool's risk is
	// invalid.
	SourceUnknownRisk = "unknown_risk:"
	// SourceInvalidKey means that the key does not name one tool.
	SourceInvalidKey = "invalid_key"
	// SourceRuleError is followed by the id of a rule about arguments whose
	// expression does not compile in this version.
	SourceRuleError = "rule_error:"
)

// Input holds all inputs of a decision.
type Input struct {
	// Key names the tool.
	Key Key
	// Automation holds the rules of the automation, if there is one.
	Automation Rules
	// Organisation holds the rules of the tenant.
	Organisation Rules
	// Risk is the tool's risk, from InferRisk.
	Risk ToolRisk
	// Danger is the mode for the risk danger: deny, unless it is
	// require_approval.
	Danger envelope.Mode
	// AskedApproval is set if the agent requests a person's approval.
	AskedApproval bool
	// Person is set if a person must approve every call of the tool, and
	// PersonGrants if a grant of a person is such an approval.
	Person, PersonGrants bool
	// Drifted is set if the tool differs from its accepted definition.
	Drifted bool
	// Trust bounds the risk that may run without a person; empty means no bound.
	Trust Trust
	// EnvelopeRisk is the risk that is compared with Trust.
	EnvelopeRisk envelope.Risk
	// MissingScopes are the needed scopes that the employee lacks.
	MissingScopes []string
	// Listed is set if a recipient is on the do-not-contact list.
	Listed bool
	// Matches are the rules about arguments that apply, from Arguments.Match.
	Matches []Match
	// Session holds the rules of the session, if there is one.
	Session Rules
	// Everybody and Personal hold a rule for each disabled tool, of the whole
	// tenant and of the employee.
	Everybody, Personal Rules
	// Tools are the patterns of the token's tools; nil means all.
	Tools []string
	// Quarantined is set if the tool is new and not accepted yet.
	Quarantined bool
	// Quorum is the number of approvals that are needed if any are; zero means
	// one.
	Quorum int
	// Grant is the grant that covers the proposal; zero if none.
	Grant GrantFound
}

// Trust is the highest risk that an employee may run without a person.
type Trust string

// The degrees of trust.
const (
	TrustNone   Trust = "none"
	TrustLow    Trust = "low"
	TrustMedium Trust = "medium"
	TrustHigh   Trust = "high"
)

// Valid reports whether t is one of the constants.
func (t Trust) Valid() bool { return t.rank() >= 0 }

// rank orders the degrees of trust; an unknown value ranks below all others.
func (t Trust) rank() int {
	return slices.Index([]Trust{TrustNone, TrustLow, TrustMedium, TrustHigh}, t)
}

// Above reports whether t is greater than another degree.
func (t Trust) Above(other Trust) bool { return t.rank() > other.rank() }

// covers reports whether a risk may run without a person.
func (t Trust) covers(r envelope.Risk) bool { return t.rank() > RiskRank(r) }

// GrantFound is a grant that covers a proposal. The zero value means none.
type GrantFound struct{ ID, Version string }

// Decision is the mode and its explanation. Decisions are shared between
// callers: Trace and TraceJSON must not be modified.
type Decision struct {
	// ID identifies the decision by its content: equal decisions with equal
	// reasons have the same id. Setting a rule again gives it another version,
	// and so changes the ids of decisions that it affects.
	ID   uuid.UUID
	Mode envelope.Mode
	// Source is the base layer that set the mode, or an invalid value, followed
	// by "+" and the name of every layer that was stricter: arguments:<rule> for
	// a rule about arguments. If a grant allowed it, "+grant:<id>" is last.
	Source string
	// Trace has a step for every layer, with or without a result, in order.
	Trace []Step
	// TraceJSON is Trace as compact JSON, for storage.
	TraceJSON json.RawMessage
}

// Step is the result of one layer.
type Step = wire.PolicyStep

// Decide evaluates every layer. Equal inputs have equal decisions; a Decider
// caches them.
func Decide(in Input) Decision {
	return conclude(&in, ask(nil, &in))
}

// ask appends the answers of all layers, in order.
func ask(answers []answer, in *Input) []answer {
	for i := range layers {
		answers = layers[i].ask(answers, in)
	}
	return answers
}

// conclude returns the decision for the answers of the layers.
func conclude(in *Input, answers []answer) Decision {
	var first, mode envelope.Mode // of the base layers, and by now
	var source []string
	if !in.Key.valid() {
		first, mode, source = envelope.ModeDeny, envelope.ModeDeny, []string{SourceInvalidKey}
	}
	trace := make([]Step, 0, len(layers))
	rest := answers
	for i := range layers {
		silent := len(trace)
		for ; len(rest) > 0 && rest[0].Layer == layers[i].name; rest = rest[1:] {
			a := rest[0]
			switch layers[i].kind {
			case base:
				if first == "" {
					first, mode, source = a.Said, a.Said, []string{a.source}
				}
			case narrowing:
				if a.Said != "" && Stricter(first, a.Said) != first {
					mode, source = Stricter(mode, a.Said), append(source, a.source)
				}
			case loosening:
				if loosen(&a.Step, mode, in.Quorum, answers); a.Said != "" {
					mode, source = a.Said, append(source, a.source)
				}
			}
			trace = append(trace, a.Step)
		}
		if len(trace) == silent {
			trace = append(trace, Step{Layer: layers[i].name})
		}
	}

	text, err := json.Marshal(trace)
	if err != nil {
		// This cannot happen, since steps are strings; a decision without an
		// explanation must not take effect.
		mode, text = envelope.ModeDeny, json.RawMessage("[]")
	}
	d := Decision{Mode: mode, Source: strings.Join(source, "+"), Trace: trace, TraceJSON: text}
	d.ID = audit.DecisionID(string(d.Mode), d.Source, d.TraceJSON)
	return d
}

// maxCached bounds a Decider. A tenant has few distinct answers of layers, so
// the bound is only reached after many changes of rules.
const maxCached = 4096

// Decider is Decide with a cache: a decision depends on the layers' answers, not
// on the tool, so there are few distinct ones. It is safe for concurrent use.
type Decider struct {
	mu     sync.RWMutex
	cached map[[sha256.Size]byte]Decision
	// questions are unused questions. They are pooled because policy decides
	// about every action of a batch.
	questions sync.Pool
}

// question holds the input and the output of ask, and the decision about the answers
// before: most actions of a batch have the same.
type question struct {
	in              Input
	answers, before []answer
	quorum          int
	valid           bool
	decision        Decision
}

// NewDecider returns a Decider with an empty cache.
func NewDecider() *Decider {
	return &Decider{cached: make(map[[sha256.Size]byte]Decision)}
}

// Decide returns the same as the function Decide. It compares the inputs of digest with
// those before, and computes a digest only for others.
func (d *Decider) Decide(in Input) Decision {
	q, _ := d.questions.Get().(*question)
	if q == nil {
		q = new(question)
	}
	q.in = in
	q.answers = ask(q.answers[:0], &q.in)
	defer d.questions.Put(q)
	valid := in.Key.valid()
	if q.before == nil || q.quorum != in.Quorum || q.valid != valid || !slices.Equal(q.before, q.answers) {
		q.decision, q.quorum, q.valid = d.find(q), in.Quorum, valid
		q.before = append(q.before[:0], q.answers...)
	}
	return q.decision
}

// find returns the decision about the answers of a question.
func (d *Decider) find(q *question) Decision {
	key := digest(&q.in, q.answers)
	d.mu.RLock()
	decision, ok := d.cached[key]
	d.mu.RUnlock()
	if ok {
		return decision
	}

	decision = conclude(&q.in, q.answers)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.cached) >= maxCached {
		clear(d.cached)
	}
	d.cached[key] = decision
	return decision
}

// digest returns the digest of all inputs of conclude.
func digest(in *Input, answers []answer) [sha256.Size]byte {
	buf := binary.AppendVarint(make([]byte, 0, 512), int64(in.Quorum))
	if in.Key.valid() {
		buf = append(buf, 1)
	}
	for i := range answers {
		a := &answers[i]
		for _, text := range [...]string{a.Layer, string(a.Said), a.Rule, a.Tool, a.Detail, a.Version, a.source} {
			buf = append(binary.AppendUvarint(buf, uint64(len(text))), text...)
		}
	}
	return sha256.Sum256(buf)
}
