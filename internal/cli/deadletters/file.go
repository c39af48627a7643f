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
	// maxLine bounds a line of an export, in bytes: arguments may be
	// envelope.MaxBytes long, and longer once they are redacted and escaped.
	maxLine = 4 << 20
	// maxBadLines bounds how many bad lines an error names.
	maxBadLines = 20
)

// readExport reads the ids of an export: an object with an action_id on
// every line. Empty lines and repeated ids are skipped.
// The error names every bad line by its number.
func readExport(in io.Reader) ([]envelope.ActionID, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
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
		id, err := readLine(text)
		switch {
		case err != nil:
			bad = append(bad, fmt.Sprintf("line %d %v", number, err))
		case !seen[id]:
			seen[id] = true
			all = append(all, id)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		bad = append(bad, fmt.Sprintf("line %d is longer than %d MiB", number+1, maxLine>>20))
	} else if err != nil {
		return nil, fmt.Errorf("read the dead letters: %w", err)
	}
	if len(bad) == 0 {
		return all, nil
	}
	if more := len(bad) - maxBadLines; more > 0 {
		bad = append(bad[:maxBadLines], fmt.Sprintf("and %d more", more))
	}
	return nil, command.Misuse("nothing was done, because of bad lines:\n  %s", strings.Join(bad, "\n  "))
}

// The ways in which a line is bad. None repeats the line.
var (
	errNotUTF8 = errors.New("is not UTF-8")
	errNotJSON = errors.New("is not a JSON object")
	errNoID    = errors.New("has no action_id")
	errBadID   = errors.New("has an action_id that is not an id")
)

func readLine(text []byte) (id envelope.ActionID, err error) {
	if !utf8.Valid(text) {
		return id, errNotUTF8
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil || fields == nil {
		return id, errNotJSON
	}
	raw, ok := fields["action_id"]
	if !ok {
		return id, errNoID
	}
	var name string
	if json.Unmarshal(raw, &name) != nil || id.UnmarshalText([]byte(name)) != nil {
		return id, errBadID
	}
	return id, nil
}
