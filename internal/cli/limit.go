package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
)

// done says that a change was made, unless err says that it was not.
func (a *app) done(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	what := line(fmt.Sprintf(format, args...))
	if a.json {
		return a.document(map[string]string{"done": what})
	}
	if _, err := fmt.Fprintln(a.sys.Out, what); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// documents writes values as one line of JSON each.
func documents[T any](a *app, all []T) error {
	for _, one := range all {
		if err := a.document(one); err != nil {
			return err
		}
	}
	return nil
}

// fieldsText says what is wrong with the fields of a setting, one a line.
func fieldsText(err error) string {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return err.Error()
	}
	lines := make([]string, len(broken.Fields))
	for i, f := range broken.Fields {
		lines[i] = strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(f.Pointer, "/"), "/", " ") + " " + f.Message)
	}
	return strings.Join(lines, "\n  ")
}
