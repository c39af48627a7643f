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

// The layers, by the names that traces and sources carry, in the order in
// which they are asked.
const (
	// LayerAutomation is a base layer: the rules of the automation that the
	// proposal runs under.
	LayerAutomation = "automation_override"
	// LayerOrganisation is a base layer: the rules of the tenant.
	LayerOrganisation = "org_default"
	// LayerInferred is the last base layer: the mode that follows from the
	// tool's risk. It always speaks.
	LayerInferred = "inferred_default"
	// LayerAsked narrows: the agent asked for a person's approval.
	LayerAsked = "asked_approval"
	// LayerDrift narrows: the tool's definition is not the accepted
	// one.
	LayerDrift = "drift"
	// LayerTrust narrows: the risk is above the employee's trust.
	LayerTrust = "trust"
	// LayerScopes narrows: the employee lacks a scope that the tool needs.
	LayerScopes = "scopes"
	// LayerDoNotContact narrows: the arguments address somebody who is on the
	// tenant's do-not-contact list.
	LayerDoNotContact = "do_not_contact"
	// LayerArguments narrows: rules about the arguments. It has a step for
	// every rule that applies, and an empty one where none does.
	LayerArguments = "arguments"
	// LayerSession narrows: the rights of the session while it lasts.
	LayerSession = "session_capability"
	// LayerPreference narrows: users switched the tool off.
	LayerPreference = "user_preference"
	// LayerToken narrows: the token that proposes is not for the tool.
	LayerToken = "token_scope"
	// LayerQuarantine narrows: the tool is new and waits to be accepted.
	LayerQuarantine = "quarantine"
	// LayerGrant comes last and is the only one that loosens: it lets through
	// what would wait for a person, because a person said so beforehand.
	LayerGrant = "grant"
)

// The sources of a decision that none of the layers could make. The first
// three are followed by the value, cut to 40 printable characters.
const (
	// SourceUnknownMode means that the rule that applies holds no mode.
	SourceUnknownMode = "unknown_mode:"
	// SourceUnknownKey means that a rule's key could not be read.
	SourceUnknownKey = "unknown_key:"
	// SourceUnknownRisk means that no rule applies and the tool's risk is
	// none of the three.
	SourceUnknownRisk = "unknown_risk:"
	// SourceInvalidKey means that the key does not name one tool.
	SourceInvalidKey = "invalid_key"
	// SourceRuleError is followed by the id of a rule about arguments whose
	// expression this version cannot compile.
	SourceRuleError = "rule_error:"
)

// Input is all that a decision depends on.
type Input struct {
	// Key names the tool.
	Key Key
	// Automation holds the rules of the automation; none if there is none.
	Automation Rules
	// Organisation holds the rules of the tenant.
	Organisation Rules
	// Risk is the tool's, from InferRisk.
	Risk ToolRisk
	// Danger is the mode that follows from the risk danger: deny, unless it is
	// require_approval.
	Danger envelope.Mode
	// AskedApproval is set if the agent wants a person to look.
	AskedApproval bool
	// Drifted is set if the tool differs from its accepted definition.
	Drifted bool
	// Trust caps the risk that may run without a person; empty caps nothing.
	Trust Trust
	// EnvelopeRisk is what Trust is held against.
	EnvelopeRisk envelope.Risk
	// MissingScopes are those that the tool needs and the employee lacks.
	MissingScopes []string
	// Listed is set if a recipient is on the do-not-contact list.
	Listed bool
	// Matches are the rules about arguments that apply, from Arguments.Match.
	Matches []Match
	// Session holds the rules of the session; none if there is none.
	Session Rules
	// Everybody and Personal hold a rule for each tool that is switched off, for the
	// whole tenant and for the employee.
	Everybody, Personal Rules
	// Tools are the patterns of the tools that the token is for; nil is all.
	Tools []string
	// Quarantined is set if the tool is new and waits to be accepted.
	Quarantined bool
	// Quorum is how many people must approve, if one must; zero is one.
	Quorum int
	// Grant is the grant that covers the proposal; zero if there is none.
	Grant GrantFound
}

// Trust is how far an employee is trusted: the highest risk that may run
// without a person.
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

// Above reports whether t trusts an employee with more than another degree.
func (t Trust) Above(other Trust) bool { return t.rank() > other.rank() }

// covers reports whether a risk may run without a person.
func (t Trust) covers(r envelope.Risk) bool { return t.rank() > RiskRank(r) }

// GrantFound is a grant that covers a proposal. The zero value is none.
type GrantFound struct{ ID, Version string }

// Decision is the mode and where it came from. Decisions are shared between
// callers: nobody may change Trace or TraceJSON.
type Decision struct {
	// ID names the decision by its content: what says the same, for the same
	// reasons, has the same id. A rule that is set anew has another version,
	// and so decisions that it takes part in have another id.
	ID   uuid.UUID
	Mode envelope.Mode
	// Source is the base layer that set the mode, or what could not be read,
	// followed by "+" and the name of every layer that was stricter than that:
	// arguments:<rule> for a rule about arguments. Where a grant let it
	// through, "+grant:<id>" comes last.
	Source string
	// Trace holds a step for every layer, asked or not, in order.
	Trace []Step
	// TraceJSON is Trace as compact JSON, ready to be stored.
	TraceJSON json.RawMessage
}

// Step is the answer of one layer.
type Step = wire.PolicyStep

// Decide asks every layer. The same input has the same decision; a Decider
// returns it without doing the work again.
func Decide(in Input) Decision {
	return conclude(&in, ask(nil, &in))
}

// ask appends the answers of all layers, in their order.
func ask(answers []answer, in *Input) []answer {
	for i := range layers {
		answers = layers[i].ask(answers, in)
	}
	return answers
}

// conclude makes the decision from the answers of the layers.
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
		// Steps are strings, so this cannot be; a decision that could not be
		// explained would still be none to act on.
		mode, text = envelope.ModeDeny, json.RawMessage("[]")
	}
	d := Decision{Mode: mode, Source: strings.Join(source, "+"), Trace: trace, TraceJSON: text}
	d.ID = audit.DecisionID(string(d.Mode), d.Source, d.TraceJSON)
	return d
}

// maxCached bounds a Decider. A tenant has few distinct answers of layers, so
// that reaching the bound means that rules have changed many times.
const maxCached = 4096

// Decider is Decide with a cache: a decision depends on the layers' answers, not
// on the tool, so that few distinct ones are made over and over. It is safe for
// concurrent use.
type Decider struct {
	mu     sync.RWMutex
	cached map[[sha256.Size]byte]Decision
	// questions are those that are not in use: policy is asked about every action
	// of a batch.
	questions sync.Pool
}

// question is what ask reads and returns.
type question struct {
	in      Input
	answers []answer
}

// NewDecider returns a Decider with an empty cache.
func NewDecider() *Decider {
	return &Decider{cached: make(map[[sha256.Size]byte]Decision)}
}

// Decide returns what the function Decide returns for the same input.
func (d *Decider) Decide(in Input) Decision {
	q, _ := d.questions.Get().(*question)
	if q == nil {
		q = new(question)
	}
	q.in = in
	q.answers = ask(q.answers[:0], &q.in)
	defer d.questions.Put(q)
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

// digest returns the digest of all that conclude looks at.
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
