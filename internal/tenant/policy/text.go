package policy

import (
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// LayerText returns the words for a layer of policy in messages to people.
func LayerText(layer string) string {
	switch layer {
	case LayerAutomation:
		return "the automation's mode"
	case LayerOrganisation:
		return "the organisation's mode"
	case LayerInferred:
		return "the default for the tool's risk"
	case LayerAsked:
		return "the agent asked for a person"
	case LayerDrift:
		return "the tool's definition changed"
	case LayerTrust:
		return "the employee's trust"
	case LayerScopes:
		return "the employee's scopes"
	case LayerArguments:
		return "a rule about arguments"
	case LayerSession:
		return "the session's mode"
	case LayerPreference:
		return "a preference"
	case LayerToken:
		return "the token's tools"
	case LayerDoNotContact:
		return "the do-not-contact list"
	case LayerQuarantine:
		return "a new tool that nobody has accepted"
	case LayerGrant:
		return "a grant"
	}
	return strings.ReplaceAll(layer, "_", " ")
}

// SourceText returns the words for the source of a decision, which is layers
// with plus signs between, each with the rule behind a colon if it has one.
func SourceText(source string) string {
	layers := strings.Split(source, "+")
	for i, layer := range layers {
		name, rule, _ := strings.Cut(layer, ":")
		layers[i] = LayerText(name)
		if rule != "" {
			layers[i] += " (" + rule + ")"
		}
	}
	return strings.Join(layers, "; ")
}

// Because returns the reason for a mode in words for people: the steps that
// said that mode, each with its rule, the tools it is for and its detail, or the
// source of the decision where no step is known.
func Because(mode envelope.Mode, source string, steps []Step) string {
	var reasons []string
	for _, s := range steps {
		if s.Said != mode {
			continue
		}
		reason := LayerText(s.Layer)
		if s.Rule != "" {
			reason += " (" + s.Rule + ")"
		}
		if s.Tool != "" {
			reason += " for " + s.Tool
		}
		if s.Detail != "" {
			reason += ": " + s.Detail
		}
		reasons = append(reasons, reason)
	}
	if len(reasons) == 0 {
		return SourceText(source)
	}
	return strings.Join(reasons, "; ")
}
