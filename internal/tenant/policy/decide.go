package policy

import (
	"crypto/sha256"
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
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
	// LayerDrift narrows: the tool's definition is not the one that an
	// operator accepted.
	LayerDrift = "drift"
	// LayerTrust narrows: the risk is above what the employee is trusted with.
	LayerTrust = "trust"
	// LayerScopes narrows: the employee lacks a scope that the tool needs.
	LayerScopes = "scopes"
	// LayerDoNotContact narrows: the arguments address somebody who is on the
	// tenant's do-not-contact list.
	LayerDoNotContact = "do_not_contact"
	// LayerArguments narrows: rules about the arguments. It has a step for
	// every rule that applies, and one that says nothing where none does.
	LayerArguments = "arguments"
	// LayerSession narrows: what the session may do while it lasts.
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
	// AskedApproval is set if the agent wants a person to look.
	AskedApproval bool
	// Drifted is set if the tool is not as an operator accepted it.
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
	// Everybody and Personal hold a rule for whatever is switched off, for the
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

// Valid says that t is one of the constants.
func (t Trust) Valid() bool {
	switch t {
	case TrustNone, TrustLow, TrustMedium, TrustHigh:
		return true
	}
	return false
}

// covers says whether a risk may run without a person. What is not a degree
// covers nothing, and what is not a risk is not covered but by TrustHigh.
func (t Trust) covers(r envelope.Risk) bool {
	switch t {
	case TrustHigh:
		return true
	case TrustMedium:
		return r == envelope.RiskLow || r == envelope.RiskMedium
	case TrustLow:
		return r == envelope.RiskLow
	case TrustNone:
		return false
	}
	return false
}

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

// Step is what one layer said.
type Step struct {
	Layer string `json:"layer"`
	// Said is empty if the layer had nothing to say.
	Said envelope.Mode `json:"said,omitzero"`
	// Rule is the id of the rule about arguments, or of the grant.
	Rule string `json:"rule,omitzero"`
	// Key is that of the rule that spoke.
	Tool string `json:"tool,omitzero"`
	// Detail says why, in a few words.
	Detail string `json:"detail,omitzero"`
	// Version is that of the rule that spoke.
	Version string `json:"version,omitzero"`
}

// Decide asks every layer. The same input has the same decision; a Decider
// gives it without doing the work again.
func Decide(in Input) Decision {
	return conclude(gather(&in))
}

// facts is what the layers see: an input with its rules looked up. It is
// comparable, and small however many rules there are. A further layer adds
// what it found here, and itself to the list in narrowings.
type facts struct {
	nameless     bool
	automation   finding
	organisation finding
	risk         ToolRisk
	asked        bool
	drifted      bool
	trust        Trust
	exposed      envelope.Risk
	missing      string
	listed       bool
	further      string
}

func gather(in *Input) facts {
	return facts{
		nameless:     !in.Key.valid(),
		automation:   in.Automation.find(in.Key),
		organisation: in.Organisation.find(in.Key),
		risk:         in.Risk,
		asked:        in.AskedApproval,
		drifted:      in.Drifted,
		trust:        in.Trust,
		exposed:      in.EnvelopeRisk,
		missing:      strings.Join(in.MissingScopes, ", "),
		listed:       in.Listed,
		further:      findFurther(in),
	}
}

// verdict is a layer's step, and the source that names it where that is not
// the layer's name.
type verdict struct {
	Step
	Source string `json:"source,omitzero"`
}

func bases(f facts) []verdict {
	return []verdict{
		stored(LayerAutomation, f.automation),
		stored(LayerOrganisation, f.organisation),
		inferred(f.risk),
	}
}

func narrowings(f facts) []verdict {
	return []verdict{
		askedApproval(f.asked),
		drift(f.drifted),
		trust(f.trust, f.exposed),
		scopes(f.missing),
		doNotContact(f.listed),
	}
}

func stored(layer string, found finding) verdict {
	step := Step{Layer: layer, Tool: found.key, Version: found.version}
	if !found.spoke {
		return verdict{Step: step}
	}
	if found.malformed {
		step.Said, step.Tool, step.Detail = envelope.ModeDeny, shown(found.key), "rule key cannot be read"
		return verdict{Step: step, Source: SourceUnknownKey + shown(found.key)}
	}
	mode, err := ParseMode(found.mode)
	if err != nil {
		step.Said, step.Detail = envelope.ModeDeny, SourceUnknownMode+shown(found.mode)
		return verdict{Step: step, Source: step.Detail}
	}
	step.Said = mode
	return verdict{Step: step, Source: layer}
}

func inferred(risk ToolRisk) verdict {
	step := Step{Layer: LayerInferred, Said: risk.Mode(), Detail: "risk " + shown(string(risk))}
	if !risk.Valid() {
		return verdict{Step: step, Source: SourceUnknownRisk + shown(string(risk))}
	}
	return verdict{Step: step, Source: LayerInferred}
}

func askedApproval(asked bool) verdict {
	if !asked {
		return verdict{Step: Step{Layer: LayerAsked}}
	}
	return verdict{
		Step:   Step{Layer: LayerAsked, Said: envelope.ModeRequireApproval, Detail: "the agent asked"},
		Source: LayerAsked,
	}
}

func drift(drifted bool) verdict {
	if !drifted {
		return verdict{Step: Step{Layer: LayerDrift}}
	}
	return verdict{
		Step:   Step{Layer: LayerDrift, Said: envelope.ModeRequireApproval, Detail: "definition is not the accepted one"},
		Source: LayerDrift,
	}
}

func trust(t Trust, r envelope.Risk) verdict {
	if t == "" {
		return verdict{Step: Step{Layer: LayerTrust}}
	}
	if t.covers(r) {
		return verdict{Step: Step{Layer: LayerTrust, Detail: "trusted with " + shown(string(t))}}
	}
	return verdict{
		Step:   Step{Layer: LayerTrust, Said: envelope.ModeRequireApproval, Detail: "risk " + shown(string(r)) + ", trusted with " + shown(string(t))},
		Source: LayerTrust,
	}
}

func scopes(missing string) verdict {
	if missing == "" {
		return verdict{Step: Step{Layer: LayerScopes}}
	}
	return verdict{
		Step:   Step{Layer: LayerScopes, Said: envelope.ModeDeny, Detail: "missing " + missing},
		Source: LayerScopes,
	}
}

func doNotContact(listed bool) verdict {
	if !listed {
		return verdict{Step: Step{Layer: LayerDoNotContact}}
	}
	return verdict{
		Step:   Step{Layer: LayerDoNotContact, Said: envelope.ModeDeny, Detail: "a recipient is on the list"},
		Source: LayerDoNotContact,
	}
}

// conclude takes the first base that speaks, lets the rest narrow it, and a
// grant loosen what waits for a person.
func conclude(f facts) Decision {
	var base verdict
	var trace []Step
	for _, v := range bases(f) {
		if base.Said == "" {
			base = v
		}
		trace = append(trace, v.Step)
	}
	if f.nameless {
		base.Said, base.Source = envelope.ModeDeny, SourceInvalidKey
	}

	mode, source := base.Said, []string{base.Source}
	further := readFurther(f.further)
	narrowed := append(narrowings(f), further.narrowings()...)
	for _, v := range narrowed {
		trace = append(trace, v.Step)
		if v.Said == "" || Stricter(base.Said, v.Said) == base.Said {
			continue
		}
		mode = Stricter(mode, v.Said)
		source = append(source, v.Source)
	}
	granted, step := further.granted(mode, narrowed)
	if granted {
		mode, source = envelope.ModeAllow, append(source, LayerGrant+":"+further.Grant.ID)
	}
	trace = append(trace, step)

	text, err := json.Marshal(trace)
	if err != nil {
		// Steps are strings, so this cannot be; a decision that could not be
		// explained would still be none to act on.
		mode, text = envelope.ModeDeny, json.RawMessage("[]")
	}
	d := Decision{Mode: mode, Source: strings.Join(source, "+"), Trace: trace, TraceJSON: text}
	sum := sha256.Sum256([]byte(string(d.Mode) + "\x00" + d.Source + "\x00" + string(d.TraceJSON)))
	d.ID = uuid.UUID(sum[:16])
	return d
}
