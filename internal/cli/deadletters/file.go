package deadletters

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const (
	// maxLetterLine bounds a line of an export, in bytes: arguments may be
	// envelope.MaxBytes long, and longer once they are redacted and escaped.
	maxLetterLine = 4 << 20
	// maxBadLines bounds how many bad lines an error names.
	maxBadLines = 20
)

// readLetterFile reads the ids of an export: an object with an action_id on
// every line. Empty lines are passed over, and so is what stands there twice.
// The error names every bad line by its number.
func readLetterFile(in io.Reader) ([]envelope.ActionID, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLetterLine)
	seen := make(map[envelope.ActionID]bool)
	var all []envelope.ActionID
	var bad []string
	number := 0
	for lines.Scan() {
		number++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		id, err := readLetterLine(text)
		switch {
		case err != nil:
			bad = append(bad, fmt.Sprintf("line %d %v", number, err))
		case !seen[id]:
			seen[id] = true
			all = append(all, id)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		bad = append(bad, fmt.Sprintf("line %d is longer than %d MiB", number+1, maxLetterLine>>20))
	} else if err != nil {
		return nil, fmt.Errorf("read the letters: %w", err)
	}
	if len(bad) == 0 {
		return all, nil
	}
	if more := len(bad) - maxBadLines; more > 0 {
		bad = append(bad[:maxBadLines], fmt.Sprintf("and %d more", more))
	}
	return nil, command.Misuse("nothing was done, because of bad lines:\n  %s", strings.Join(bad, "\n  "))
}

// The ways in which a line is bad. None repeats what stands there.
var (
	errLetterText = errors.New("is not UTF-8")
	errLetterJSON = errors.New("is not a JSON object")
	errLetterNoID = errors.New("has no action_id")
	errLetterID   = errors.New("has an action_id that is none")
)

func readLetterLine(text []byte) (id envelope.ActionID, err error) {
	if !utf8.Valid(text) {
		return id, errLetterText
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil || fields == nil {
		return id, errLetterJSON
	}
	raw, ok := fields["action_id"]
	if !ok {
		return id, errLetterNoID
	}
	var name string
	if json.Unmarshal(raw, &name) != nil || id.UnmarshalText([]byte(name)) != nil {
		return id, errLetterID
	}
	return id, nil
}
