package modeltest

import (
	"embed"
	"encoding/json"
	"fmt"
)

//go:embed recordings
var recordings embed.FS

// Recording is a request to a real server and its answer.
type Recording struct {
	Request struct {
		Path string          `json:"path"`
		Body json.RawMessage `json:"body"`
	} `json:"request"`
	Status   int             `json:"status"`
	Response json.RawMessage `json:"response"`
}

// Recorded returns a recording of llama-server or ollama, by its name without
// the extension .json.
func Recorded(server, name string) (Recording, error) {
	raw, err := recordings.ReadFile("recordings/" + server + "/" + name + ".json")
	if err != nil {
		return Recording{}, err
	}
	var r Recording
	if err := json.Unmarshal(raw, &r); err != nil {
		return Recording{}, fmt.Errorf("recording %s of %s: %w", name, server, err)
	}
	return r, nil
}

// Body returns the body of the answer as sent.
func (r Recording) Body() []byte {
	var text string
	if json.Unmarshal(r.Response, &text) == nil {
		return []byte(text)
	}
	return r.Response
}

// recorded returns the body of a recorded answer, which callers may change.
func recorded(server, name string) map[string]any {
	var body map[string]any
	r, err := Recorded(server, name)
	if err != nil || json.Unmarshal(r.Response, &body) != nil {
		return map[string]any{"error": "the recording " + name + " of " + server + " cannot be read"}
	}
	return body
}
