// Package tag owns action tags: keywords that an owner sets on a message so
// that a tool is called with data of it. It holds the registry of actions, the states of
// a tag, and the extraction of arguments. It reads no mailbox and no database,
// and proposes nothing.
package tag

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
)

// Action is the definition of an action: the tool to call, and where its
// arguments come from.
type Action struct {
	Description string `json:"description,omitzero"`
	Source      string `json:"source"`
	Tool        string `json:"tool"`
	// Prompt is added to the question for a language model.
	Prompt string `json:"prompt,omitzero"`
	// DefaultArgs are arguments in JSON. They win over extracted ones.
	DefaultArgs map[string]json.RawMessage `json:"default_args,omitempty"`
}

// DefaultSource is the source of the tools of the built-in actions.
const DefaultSource = "dav"

// The built-in actions.
const (
	AddContact     = "add-contact"
	CreateReminder = "create-reminder"
)

// DefaultMax is the default number of tries that begin in one round.
const DefaultMax = 10

// nameForm is the form of an action's name, which is part of a keyword.
var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,49}$`)

// ValidName reports whether an action can have a name.
func ValidName(name string) bool { return nameForm.MatchString(name) }

// Registry returns the built-in actions and those of the configuration, which win.
func Registry(configured map[string]Action) map[string]Action {
	all := map[string]Action{
		AddContact:     {Description: "Add the sender to an address book.", Source: DefaultSource, Tool: AddContact, Prompt: "Who sent the e-mail: name, organization, position and telephone numbers, as in the signature."},
		CreateReminder: {Description: "Create a reminder of what the message asks for.", Source: DefaultSource, Tool: CreateReminder, Prompt: "What the person should be reminded of, and when it begins and ends."},
	}
	maps.Copy(all, configured)
	return all
}

// Field is a parameter of a tool that an action fills in.
type Field struct {
	Name string
	// List reports whether it takes a list of texts instead of one.
	List     bool
	Required bool
}

// Fields returns the parameters of a tool that take texts or lists of texts, and
// the names of required ones that take something else.
func Fields(schema json.RawMessage) (fields []Field, others []string, err error) {
	type kind struct {
		Type any
		Enum []any
	}
	var s struct {
		Properties map[string]struct {
			kind
			Items kind
		}
		Required []string
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p, required := s.Properties[name], slices.Contains(s.Required, name)
		switch {
		case p.Type == "string" && len(p.Enum) == 0:
			fields = append(fields, Field{name, false, required})
		case p.Type == "array" && p.Items.Type == "string":
			fields = append(fields, Field{name, true, required})
		case required:
			others = append(others, name)
		}
	}
	for _, name := range s.Required {
		if _, known := s.Properties[name]; !known {
			others = append(others, name)
		}
	}
	return fields, others, nil
}
