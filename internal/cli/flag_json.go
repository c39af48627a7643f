package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// jsonFlag reads what a flag holds as JSON, or in the file that it names with
// an @ before; nil for nothing. What it read is not repeated in the error,
// since it may be a secret.
func (a *app) jsonFlag(flag, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	raw := []byte(text)
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		in, err := a.open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = in.Close() }()
		if raw, err = io.ReadAll(io.LimitReader(in, envelope.MaxBytes+1)); err != nil {
			return nil, fmt.Errorf("read --%s: %w", flag, err)
		}
	}
	if !json.Valid(raw) {
		return nil, misuse("--%s must hold a JSON object, or @ and the name of a file that does", flag)
	}
	return raw, nil
}
