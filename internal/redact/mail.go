package redact

import (
	"bytes"
	"encoding/json"
	"strings"
)

// tries is the beginning of the external ids of actions whose arguments are text
// of mail that its owner tagged.
const tries = "triage:tag:"

// Mail returns the arguments of an action without text of mail: every text in
// them is replaced if the external id is that of an action tag.
func Mail(externalID string, args json.RawMessage) json.RawMessage {
	if !strings.HasPrefix(externalID, tries) || len(args) == 0 {
		return args
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return json.RawMessage(`"` + redacted + `"`)
	}
	clean, err := json.Marshal(replaced(value))
	if err != nil {
		return json.RawMessage(`"` + redacted + `"`)
	}
	return clean
}

// replaced returns a value with every text replaced.
func replaced(value any) any {
	switch v := value.(type) {
	case string:
		return redacted
	case map[string]any:
		for name, member := range v {
			v[name] = replaced(member)
		}
	case []any:
		for i, member := range v {
			v[i] = replaced(member)
		}
	}
	return value
}
