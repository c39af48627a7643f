package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/parser"

	"github.com/countersign-dev/countersign/envelope"
)

// Bounds of an expression.
const (
	// MaxExpressionBytes is the maximum length of its text.
	MaxExpressionBytes = 4 << 10
	// maxNesting bounds nested loops.
	maxNesting = 2
	// maxPattern bounds the instructions of a compiled regular expression, and
	// maxMatching their product with the size of the arguments in bytes. This
	// bounds the steps of a match to some tens of milliseconds; cel-go counts
	// them only afterwards.
	maxPattern  = 1000
	maxMatching = 20_000_000
	// maxCost bounds the cost of one evaluation, in cel-go's units, and maxSpent
	// that of all evaluations for one proposal. They correspond to some
	// milliseconds, and some tens of them.
	maxCost  = 100_000
	maxSpent = 5 * maxCost
	// maxReported bounds the problems in one error.
	maxReported = 3
)

// RuleExpression is the rule in a field error for a rejected expression.
const RuleExpression envelope.Rule = "expression"

// each is the function that is applied to the list of every loop, so that a loop
// over anything else is an error. Its name is not a valid identifier.
const each = "@each"

// Language is CEL with the variables of a proposal and functions of bounded
// cost. It is safe for concurrent use.
type Language struct{ env *cel.Env }

// NewLanguage creates the language. That takes milliseconds, so it should be
// shared. An error is a bug in this package.
func NewLanguage() (*Language, error) {
	list := cel.ListType(cel.DynType)
	opts := []cel.EnvOption{
		cel.CrossTypeNumericComparisons(true),
		ext.Strings(),
		cel.ClearMacros(),
		cel.Macros(
			cel.HasMacro, loop(operators.Exists, parser.MakeExists), loop(operators.All, parser.MakeAll),
			loop(operators.ExistsOne, parser.MakeExistsOne), loop(operators.Filter, parser.MakeFilter),
		),
		cel.Function(each, cel.Overload("each_list", []*cel.Type{list}, list, cel.UnaryBinding(func(v ref.Val) ref.Val { return v }))),
		cel.ParserExpressionSizeLimit(MaxExpressionBytes),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateComprehensionNestingLimit(maxNesting)),
	}
	for name, kind := range variables() {
		opts = append(opts, cel.Variable(name, kind))
	}
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return nil, err
	}
	return &Language{env}, nil
}

// variables returns the names in expressions, with their types.
func variables() map[string]*cel.Type {
	return map[string]*cel.Type{
		variableArgs: cel.MapType(cel.StringType, cel.DynType), "tool.source": cel.StringType, "tool.name": cel.StringType,
		"tool.risk": cel.StringType, "tool.effect": cel.StringType, "envelope.risk": cel.StringType, "envelope.automation": cel.StringType,
		"envelope.session": cel.StringType, "employee.id": cel.StringType, "employee.known": cel.BoolType, "employee.trust": cel.StringType,
		"employee.scopes": cel.ListType(cel.StringType),
	}
}

// undeclared matches cel-go's message about a name that does not exist.
var undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)

// explain adds the existing names to a message about an unknown one: those of
// the same object if there are any, else all. It removes cel-go's suggestion,
// which consists of names of types.
func explain(message string) string {
	found := undeclared.FindStringSubmatch(message)
	if found == nil {
		return message
	}
	object, _, _ := strings.Cut(found[1], ".")
	all := slices.Sorted(maps.Keys(variables()))
	names := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !strings.HasPrefix(name, object+".") })
	if len(names) == 0 {
		names = all
	}
	return found[0] + "; the names are " + strings.Join(names, ", ")
}

// variableArgs is the variable that holds the arguments.
const variableArgs = "args"

// taken reports whether a loop's variable may not have a name, because it would
// shadow a variable of the language.
func taken(name string) bool {
	switch name {
	case variableArgs, "tool", "envelope", "employee":
		return true
	}
	return false
}

// loop returns a macro that accepts only lists. CEL's own macros also iterate
// over the keys of an object, so an agent that sends an object in place of a
// list could pass its keys.
func loop(name string, expand cel.MacroFactory) cel.Macro {
	return cel.ReceiverMacro(name, 2, func(mef cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
		if args[0].Kind() == ast.IdentKind && taken(args[0].AsIdent()) {
			return nil, mef.NewError(args[0].ID(), "the name "+args[0].AsIdent()+" is taken; give the loop's variable another one")
		}
		return expand(mef, mef.NewCall(each, target), args)
	})
}

// allowed reports whether an expression may call a function. The excluded
// functions return values larger than their arguments, or search in time
// proportional to the product of sizes.
func allowed(function string) bool {
	switch function {
	case operators.Conditional, operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Equals, operators.NotEquals,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.Add, operators.Subtract, operators.Multiply,
		operators.Divide, operators.Modulo, operators.Negate, operators.Index, operators.In, operators.NotStrictlyFalse, each,
		"size", "startsWith", "endsWith", "contains", "matches", "lowerAscii", "upperAscii", "trim", "substring", "charAt", "split",
		"int", "uint", "double", "string", "bool", "type", "dyn", "timestamp", "duration":
		return true
	}
	return false
}

// Shape is the known part of a tool's arguments.
type Shape struct {
	// Closed reports whether there are no arguments other than Names.
	Closed bool
	Names  []string
}

// ShapeOf returns the shape of a tool's input schema. It is zero for a schema
// that cannot be parsed or allows additional properties.
func ShapeOf(schema json.RawMessage) Shape {
	var s struct {
		Properties           map[string]json.RawMessage `json:"properties"`
		PatternProperties    map[string]json.RawMessage `json:"patternProperties"`
		AdditionalProperties *bool                      `json:"additionalProperties"`
	}
	if json.Unmarshal(schema, &s) != nil || s.AdditionalProperties == nil || *s.AdditionalProperties || len(s.PatternProperties) > 0 {
		return Shape{}
	}
	shape := Shape{Closed: true}
	for name := range s.Properties {
		shape.Names = append(shape.Names, name)
	}
	slices.Sort(shape.Names)
	return shape
}

// Mistake is a problem in the text of an expression.
type Mistake struct {
	// Line and Column count from 1, columns in characters (code points). They are
	// zero for a problem of the whole expression.
	Line, Column int
	// Length is the number of characters of the wrong part; zero at the end of a
	// line.
	Length  int
	Message string
}

// Compile parses and checks an expression. Its type must be bool, or known only
// at run time. The arguments that it names must be in the shape. The error is an
// *envelope.InvalidError at /expression with line, column and problem.
func (l *Language) Compile(text string, shape Shape) (*Expression, error) {
	e, found := l.Check(text, shape)
	if len(found) > 0 {
		return nil, refused(described(text, found))
	}
	return e, nil
}

// Check is Compile with the mistakes as values, at most three.
func (l *Language) Check(text string, shape Shape) (*Expression, []Mistake) {
	if found := readable(text); found != nil {
		return nil, found
	}
	checked, issues := l.env.Compile(text)
	if issues.Err() != nil {
		return nil, mistakes(text, issues.Errors())
	}
	if out := checked.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, whole("must return true or false, not %s", out)
	}
	patterns, found := review(checked, shape)
	if len(found) > 0 {
		return nil, mistakes(text, found)
	}
	program, err := l.env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostTracking(meter{}), cel.CostLimit(maxCost))
	if err != nil {
		return nil, whole("cannot be prepared: %s", firstLine(err.Error()))
	}
	return &Expression{program, patterns}, nil
}

// whole returns a mistake of the whole expression.
func whole(format string, args ...any) []Mistake {
	return []Mistake{{Message: fmt.Sprintf(format, args...)}}
}

// readable rejects text with hidden characters.
func readable(text string) []Mistake {
	switch {
	case strings.TrimSpace(text) == "":
		return whole("is empty")
	case len(text) > MaxExpressionBytes:
		return whole("has more than %d bytes", MaxExpressionBytes)
	case !utf8.ValidString(text):
		return whole("is not UTF-8")
	}
	for i, r := range text {
		if r != '\n' && r != '\t' && r != '\r' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			line := text[strings.LastIndex(text[:i], "\n")+1 : i]
			return []Mistake{{
				Line: strings.Count(text[:i], "\n") + 1, Column: utf8.RuneCountInString(line) + 1, Length: 1,
				Message: fmt.Sprintf("contains the invisible character %U at byte %d; write it as an escape", r, i),
			}}
		}
	}
	return nil
}

// review returns the violations of rules beyond the types. It also returns the
// number of instructions of the regular expressions.
func review(checked *cel.Ast, shape Shape) (patterns int, found []*cel.Error) {
	info := checked.NativeRep().SourceInfo()
	report := func(e ast.Expr, format string, args ...any) {
		found = append(found, &cel.Error{Location: info.GetStartLocation(e.ID()), Message: fmt.Sprintf(format, args...)})
	}
	argument := func(e, of ast.Expr, name string) {
		if shape.Closed && of.Kind() == ast.IdentKind && of.AsIdent() == variableArgs && !slices.Contains(shape.Names, name) {
			report(e, "the tool has no argument %q; it has %s", name, listed(shape.Names))
		}
	}
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			call := e.AsCall()
			name, args := call.FunctionName(), call.Args()
			switch {
			case !allowed(name):
				report(e, "%s is not a function of rules", name)
			case name == "matches":
				size, why := pattern(args[len(args)-1])
				if patterns += size; why != "" {
					report(e, "%s", why)
				}
			case name == operators.Index && args[1].Kind() == ast.LiteralKind:
				if text, ok := args[1].AsLiteral().Value().(string); ok {
					argument(e, args[0], text)
				}
			}
		case ast.SelectKind:
			argument(e, e.AsSelect().Operand(), e.AsSelect().FieldName())
		case ast.StructKind:
			report(e, "rules cannot create values of a named type")
		case ast.UnspecifiedExprKind, ast.ComprehensionKind, ast.IdentKind, ast.ListKind, ast.LiteralKind, ast.MapKind:
		}
	}))
	return patterns, found
}

// pattern returns the number of instructions of a regular expression, or the
// problem with it. It must be a literal: otherwise the agent could choose it in
// the arguments.
func pattern(e ast.Expr) (size int, why string) {
	if e.Kind() != ast.LiteralKind {
		return 0, "matches requires a literal regular expression"
	}
	text, ok := e.AsLiteral().Value().(string)
	if !ok {
		return 0, "matches requires text"
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, "the regular expression cannot be read"
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxPattern {
		return 0, "the regular expression is too large"
	}
	return len(program.Inst), ""
}

// mistakes returns the problems with their places in the text.
func mistakes(text string, found []*cel.Error) []Mistake {
	lines := strings.Split(text, "\n")
	all := make([]Mistake, min(len(found), maxReported))
	for i := range all {
		m := Mistake{
			Line: max(found[i].Location.Line(), 1), Column: max(found[i].Location.Column(), 0) + 1, Message: explain(firstLine(found[i].Message)),
		}
		if m.Line <= len(lines) {
			m.Length = extent([]rune(strings.TrimSuffix(lines[m.Line-1], "\r")), m.Column-1)
		}
		all[i] = m
	}
	return all
}

// extent returns the length of the token of a line at a column: a name with the
// dot before it, a number, a text, or one character; zero at the end.
func extent(line []rune, column int) int {
	if column >= len(line) {
		return 0
	}
	end, first := column+1, line[column]
	word := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	switch {
	case first == '"' || first == '\'':
		for end < len(line) && line[end] != first {
			end++
		}
		end = min(end+1, len(line))
	case first == '.' || word(first):
		for end < len(line) && word(line[end]) {
			end++
		}
	}
	return end - column
}

// described returns a text of mistakes, each with the line that it is in.
func described(text string, found []Mistake) string {
	lines := strings.Split(text, "\n")
	messages := make([]string, len(found))
	for i, m := range found {
		messages[i] = m.Message
		if m.Line > 0 {
			messages[i] = fmt.Sprintf("line %d, column %d: %s", m.Line, m.Column, m.Message)
		}
		if m.Line > 0 && m.Line <= len(lines) {
			messages[i] += excerpt(lines[m.Line-1], m.Column-1)
		}
	}
	return strings.Join(messages, "\n")
}

// shownAround is the number of characters of a long line shown on either side of
// a problem.
const shownAround = 60

// excerpt returns a line with a caret below one of its columns.
func excerpt(line string, column int) string {
	runes := []rune(strings.ReplaceAll(strings.TrimSuffix(line, "\r"), "\t", " "))
	column = min(column, len(runes))
	from := max(0, column-shownAround)
	part := string(runes[from:min(len(runes), column+shownAround)])
	return "\n  " + part + "\n  " + strings.Repeat(" ", column-from) + "^"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func refused(message string) error {
	return &envelope.InvalidError{Fields: []envelope.FieldError{{Pointer: "/expression", Rule: RuleExpression, Message: message}}}
}
