package schema

import (
	"errors"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxPatternBytes is the longest regular expression.
	maxPatternBytes = 4 << 10
	// maxPatternSize bounds the instructions of a compiled regular expression,
	// since the time that a match takes is their number times the length of the
	// text.
	maxPatternSize = 2000
	// bytesPerStep is how much of a text a step looks at once.
	bytesPerStep = 32
)

// pattern is a compiled regular expression of a known size.
type pattern struct {
	*regexp.Regexp
	size int
}

// compilePattern compiles a regular expression of RE2, unless it is too large.
func compilePattern(text string) (*pattern, error) {
	if len(text) > maxPatternBytes {
		return nil, errors.New("the regular expression is too long")
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := patternSize(parsed)
	if size > maxPatternSize {
		return nil, errors.New("the regular expression is too large")
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{compiled, size}, nil
}

// patternSize returns about how many instructions a regular expression compiles
// to. The parser bounds its nesting and its counts.
func patternSize(re *syntax.Regexp) int {
	size := 1
	if re.Op == syntax.OpLiteral {
		size = len(re.Rune)
	}
	for _, sub := range re.Sub {
		if size += patternSize(sub); size > maxPatternSize {
			return size
		}
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1) + 1
	}
	return size
}

// matchSteps returns how many steps it takes to match a text.
func matchSteps(re jsonschema.Regexp, text string) int {
	size := 1
	if p, ok := re.(*pattern); ok {
		size = p.size
	}
	return 2 + len(text)*size/bytesPerStep
}
