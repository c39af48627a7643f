package policy

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// ModeText describes the effect of a policy mode on a call.
func ModeText(m envelope.Mode) string {
	switch m {
	case envelope.ModeAllow:
		return "runs at once"
	case envelope.ModeRequireApproval:
		return "waits for a person"
	case envelope.ModeDeny:
	}
	return "is denied"
}

// LayerText returns the description of a layer for people.
func LayerText(name string) string {
	for i := range layers {
		if layers[i].name == name {
			return layers[i].text
		}
	}
	return strings.ReplaceAll(name, "_", " ")
}

// SourceText returns the description of a decision's source for people. A source
// is layers joined by plus signs, each with its rule after a colon if it has
// one.
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

// Because returns the reason for a mode for people: the steps with that mode,
// each with its rule, its tools and its detail, or the source of the decision if
// there is no such step.
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

// Steps returns the steps of a stored trace; none if it is invalid.
func Steps(trace json.RawMessage) []Step {
	steps := []Step{}
	if json.Unmarshal(trace, &steps) != nil {
		return []Step{}
	}
	return steps
}

// Denying returns the steps of a stored trace with the mode deny.
func Denying(trace json.RawMessage) []Step {
	return slices.DeleteFunc(Steps(trace), func(s Step) bool { return s.Said != envelope.ModeDeny })
}
