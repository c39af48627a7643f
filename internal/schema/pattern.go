package schema

import (
	"context"
	"errors"
	"regexp"
	"regexp/syntax"
	"time"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxPatternBytes is the maximum length of a regular expression.
	maxPatternBytes = 4 << 10
	// maxPatternSize bounds the instructions of a regular expression of RE2, since
	// the time that a match takes is their number times the length of the text.
	maxPatternSize = 2000
	// bytesPerStep is the length of text that is matched in a step.
	bytesPerStep = 32
	// matchTimeout bounds a backtracking match, which has no other bound.
	matchTimeout = 200 * time.Millisecond
	// backtrackStep is the time of a backtracking match that counts as a step.
	// It is ten times that of a step, since another process may have the
	// processor.
	backtrackStep = 500 * time.Nanosecond
	// maxBacktrackText is the maximum length of a text for a backtracking match,
	// which takes memory in proportion.
	maxBacktrackText = 64 << 10
)

// pattern is a regular expression of a schema: compiled for RE2 if possible,
// else for a backtracking engine. One that neither supports is unchecked, and
// every text may match it.
type pattern struct {
	text   string
	linear *regexp.Regexp
	size   int
	back   *regexp2.Regexp
}

// String implements jsonschema.Regexp.
func (p *pattern) String() string { return p.text }

// MatchString implements jsonschema.Regexp. Checks use evaluation.match, which
// is bounded.
func (p *pattern) MatchString(text string) bool {
	switch {
	case p.linear != nil:
		return p.linear.MatchString(text)
	case p.back != nil:
		matches, err := p.back.MatchString(text)
		return matches && err == nil
	}
	return true
}

// propertyPattern matches a Unicode property in the syntax of ECMAScript.
var propertyPattern = regexp.MustCompile(`\\([pP])\{(?:Script|sc|General_Category|gc)=(\w+)\}`)

// compilePattern compiles a regular expression, for RE2 if that supports it and
// it is not too large.
func compilePattern(text string) (*pattern, error) {
	if len(text) > maxPatternBytes {
		return nil, errors.New("the regular expression is too long")
	}
	for _, expression := range []string{text, propertyPattern.ReplaceAllString(text, `\$1{$2}`)} {
		if p := compileLinear(expression); p != nil {
			p.text = text
			return p, nil
		}
		if back := compileBacktracking(expression); back != nil {
			return &pattern{text: text, back: back}, nil
		}
	}
	return nil, errors.New("this regular expression is not supported")
}

// compileLinear compiles an expression for RE2. It returns nil if RE2 does not
// support it or if it is too large.
func compileLinear(text string) *pattern {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil
	}
	size := patternSize(parsed)
	if size > maxPatternSize {
		return nil
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil
	}
	return &pattern{linear: compiled, size: size}
}

// compileBacktracking compiles an expression in the syntax of ECMAScript. It
// returns nil if the library does not support it. A panic of the library must
// not end the process, since the expression comes from outside.
func compileBacktracking(text string) (re *regexp2.Regexp) {
	defer func() {
		if recover() != nil {
			re = nil
		}
	}()
	re, err := regexp2.Compile(text, regexp2.ECMAScript|regexp2.Unicode)
	if err != nil {
		return nil
	}
	re.MatchTimeout = matchTimeout
	return re
}

// patternSize returns the approximate number of instructions of a compiled
// regular expression. The parser bounds its nesting and its counts.
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

// match reports whether a text matches a regular expression. If no engine
// supports the expression, checked is false, and the text may match.
func (e *evaluation) match(ctx context.Context, re jsonschema.Regexp, text string) (matches, checked bool) {
	p, ok := re.(*pattern)
	switch {
	case !ok:
		return e.spend(ctx, 2+len(text)/bytesPerStep) && re.MatchString(text), true
	case p.linear != nil:
		return e.spend(ctx, 2+len(text)*p.size/bytesPerStep) && p.linear.MatchString(text), true
	case p.back != nil:
		return e.backtrack(ctx, p.back, text), true
	}
	e.unchecked++
	return e.spend(ctx, 1), false
}

// backtrack is match with the backtracking engine. A match that times out ends
// the check.
func (e *evaluation) backtrack(ctx context.Context, re *regexp2.Regexp, text string) (matches bool) {
	defer func() {
		if recover() != nil { // a panic of the library must not end the process
			matches, e.stopped = false, ErrCost
		}
	}()
	if len(text) > maxBacktrackText {
		e.stopped = ErrCost
		return false
	}
	if !e.spend(ctx, 2+len(text)) {
		return false
	}
	began := time.Now()
	matches, err := re.MatchString(text)
	if err != nil {
		e.stopped = ErrCost
	}
	return e.spend(ctx, int(time.Since(began)/backtrackStep)) && matches
}
