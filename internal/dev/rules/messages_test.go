package rules_test

import (
	"flag"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

var updateMessages = flag.Bool("update", false, "rewrite testdata/messages.txt")

// messageList holds every message that people read, by package or file. A
// change of a message changes the list, so that a reviewer reads it.
const messageList = "testdata/messages.txt"

// messageHabits never occur in a message.
func messageHabits() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b((is|are) (no|none)|says|tells|what is|besides?|anew|whoever|whatever)\b`)
}

// TestMessages compares the messages of the sources with the list.
func TestMessages(t *testing.T) {
	t.Parallel()
	tree := root()
	r, err := open(tree)
	if err != nil {
		t.Fatal(err)
	}

	found := goMessages(r)
	page, err := pageMessages(tree)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(found, page)
	for _, problem := range badMessages(found) {
		t.Error(problem)
	}
	got := messageText(found)
	if *updateMessages {
		if err := os.WriteFile(messageList, []byte(got), 0o644); err != nil { // a golden file
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(messageList)
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range listDifference(string(want), got) {
		t.Error(difference + "; read the messages, then run go test ./internal/dev/rules -run TestMessages -update")
	}
}

// messageCalls match the functions that a text for people is given to, and
// messageNames the fields and variables that hold one.
var (
	messageCalls = regexp.MustCompile(`^(fault\.\w+|errors\.New|http\.Error|(\w+\.)*(Add|add|Invalid|invalid\w*|[Rr]efuse|refusal|refused|unusable|syntax|wrong|` +
		`fault|fail|warn|grade|step|put|report|NewProblem|Skip|unsupported|TokenError|endProgram|heldBack|found))$`)
	messageNames = regexp.MustCompile(`^(?i:title|detail|message|why|because|unusable|reason|problem|remedy|text|about|err\w+)$`)
)

// goMessages returns the messages of the Go sources by package: the texts of
// faults, problems and field errors, and every text of the command line and the
// programs.
func goMessages(r repo) map[string][]string {
	found := make(map[string][]string)
	for _, f := range r.files {
		if f.test || f.generated || isHelper(f.pkg) || within(f.pkg, "internal/dev") || within(f.pkg, "bench") || within(f.pkg, "deploy") || within(f.pkg, "internal/triage/evaluate") {
			continue
		}
		program := strings.HasPrefix(f.pkg, "internal/cli") || strings.HasPrefix(f.pkg, "cmd")
		add := func(nodes ...ast.Expr) {
			for _, node := range nodes {
				found[f.pkg] = append(found[f.pkg], sentence(node)...)
			}
		}
		ast.Inspect(f.tree, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				return n.Tag == nil
			case *ast.BasicLit:
				if program {
					add(n)
				}
			case *ast.CallExpr:
				if messageCalls.MatchString(selector(n.Fun)) {
					add(n.Args...)
				}
			case *ast.ReturnStmt:
				add(n.Results...)
			case *ast.KeyValueExpr:
				if messageNames.MatchString(selector(n.Key)) {
					add(n.Value)
				}
			case *ast.AssignStmt:
				if len(n.Lhs) == len(n.Rhs) {
					for i, name := range n.Lhs {
						if messageNames.MatchString(selector(name)) {
							add(n.Rhs[i])
						}
					}
				}
			}
			return true
		})
	}
	return found
}

// selector returns a name, with the name that it is selected from.
func selector(node ast.Expr) string {
	switch n := node.(type) {
	case *ast.Ident:
		return n.Name
	case *ast.SelectorExpr:
		return selector(n.X) + "." + n.Sel.Name
	}
	return ""
}

// messageNoise matches literals that nobody reads: formats without words, media
// types and policies of content, routes, settings of files, and SQL.
var messageNoise = regexp.MustCompile(`^(%[-+#0-9.\[\]]*[a-zA-Z%]|[^\pL%]|\bT\b)*$|^(#|-{3}|={3}|\[|\{|<!|From: |(GET|PUT|POST|DELETE) /|host all|local all)|; charset=|-src '|^(SELECT|AND|WHERE|OFFSET|SET) |\w+ (=|<|>=) (ANY )?\(?%s`)

// sentence returns the literals of an expression that have several words.
func sentence(node ast.Node) []string {
	var all []string
	ast.Inspect(node, func(node ast.Node) bool {
		if pair, ok := node.(*ast.KeyValueExpr); ok && selector(pair.Key) == "Description" {
			return false // of a tool, for agents
		}
		if call, ok := node.(*ast.CallExpr); ok && selector(call.Fun) != "fmt.Sprintf" {
			return false
		}
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(strings.TrimSpace(text), " ") && !messageNoise.MatchString(text) {
				all = append(all, strings.Join(strings.Fields(text), " "))
			}
		}
		return true
	})
	return all
}

// pageComment, pageClass, pageExpr, pageLiteral and pageMarkup match comments,
// class names, the innermost expressions of templates, quoted texts, and texts
// between tags or expressions of JSX.
var (
	pageComment = regexp.MustCompile(`(?m)(^|\s)//.*$|^import .*$`)
	pageClass   = regexp.MustCompile(`\bclass(Name)?=("[^"]*"|\{([^{}]|\{[^{}]*\})*\})`)
	pageExpr    = regexp.MustCompile(`\$\{[^{}]*\}`)
	pageLiteral = regexp.MustCompile("'(?:[^'\\\\\n]|\\\\.)*'|\"[^\"\n]*\"|`[^`]*`")
	pageMarkup  = regexp.MustCompile(`[>}]([^<>{}=;]*[A-Za-z’][^<>{}=;]*)[<{]`)
	pageCode    = regexp.MustCompile(`\b(const|return|if|else|case|function|interface|export|type|void|let)\b|=>|&&|\?\?|[|\[\]]|\w\(`)
	pageNoise   = regexp.MustCompile(`^\[role=|^a, |^text/event|^(tone|mark|risk|state|row|small|muted|mono|faint|nowrap|hide)[ -]|[ -](tone|mark|risk)-| (muted|row|cut|mono|small|nowrap)$`)
	pageWords   = regexp.MustCompile(`[A-Za-z’]{2,},? [A-Za-z’]`)
)

// pageMessages returns the texts of the page by file.
func pageMessages(tree fs.FS) (map[string][]string, error) {
	found := make(map[string][]string)
	err := fs.WalkDir(tree, "web/src", func(file string, _ fs.DirEntry, err error) error {
		extension := path.Ext(file)
		if err != nil || extension != ".ts" && extension != ".tsx" || strings.HasSuffix(file, ".test.ts") || file == "web/src/api.d.ts" {
			return err
		}
		text, err := fs.ReadFile(tree, file)
		found[file] = pageTexts(string(text), extension == ".tsx")
		return err
	})
	return found, err
}

// pageTexts extracts the texts of a source of the page.
func pageTexts(source string, markup bool) []string {
	var all []string
	add := func(text string) {
		if text = strings.Join(strings.Fields(text), " "); pageWords.MatchString(text) && !pageNoise.MatchString(text) {
			all = append(all, text)
		}
	}
	literals := func(text string) {
		for _, literal := range pageLiteral.FindAllString(text, -1) {
			add(literal[1 : len(literal)-1])
		}
	}
	source = pageComment.ReplaceAllString(source, "$1")
	source = pageClass.ReplaceAllString(source, "")
	for pageExpr.MatchString(source) { // a template in a template is a text of its own
		source = pageExpr.ReplaceAllStringFunc(source, func(expr string) string {
			literals(expr[2 : len(expr)-1])
			return "%s"
		})
	}
	literals(source)
	if markup {
		for i := 0; i < len(source); {
			at := pageMarkup.FindStringSubmatchIndex(source[i:])
			if at == nil {
				break
			}
			if text := source[i+at[2] : i+at[3]]; !pageCode.MatchString(text) {
				add(text)
			}
			i += at[3] // the end of one text may begin the next
		}
	}
	return all
}

// badMessages lists messages with a habit.
func badMessages(found map[string][]string) []string {
	var bad []string
	for area, messages := range found {
		for _, message := range messages {
			if habit := messageHabits().FindString(message); habit != "" {
				bad = append(bad, area+": "+strconv.Quote(habit)+" in "+strconv.Quote(message)+"; name the thing, the problem and the remedy")
			}
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

// messageText is the list: a heading for each area, and its messages in order.
func messageText(found map[string][]string) string {
	var list strings.Builder
	for _, area := range slices.Sorted(maps.Keys(found)) {
		messages := slices.Compact(slices.Sorted(slices.Values(found[area])))
		if len(messages) > 0 {
			list.WriteString("== " + area + "\n" + strings.Join(messages, "\n") + "\n\n")
		}
	}
	return list.String()
}

// listDifference names lines that only one of two lists has.
func listDifference(want, got string) []string {
	count, area := make(map[string]int), ""
	for i, list := range []string{want, got} {
		for line := range strings.Lines(list) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "== ") {
				area = line[3:]
			}
			count[area+": "+line] += 2*i - 1
		}
	}
	var all []string
	for line, n := range count {
		if n < 0 {
			all = append(all, "gone: "+line)
		} else if n > 0 {
			all = append(all, "new: "+line)
		}
	}
	slices.Sort(all)
	return all
}

// TestMessagesCanFail extracts messages from small sources.
func TestMessagesCanFail(t *testing.T) {
	t.Parallel()
	r, err := parse(map[string]string{
		"a/a.go":       "package a\n\nimport \"fault\"\n\nvar e, s = fault.New(1, \"7 is no \"+\"number at all\"), \"not shown\"\n",
		"cmd/x/x.go":   "package main\n\nvar s = \"it %s\\nfails\"\n",
		"a/a_test.go":  "package a\n\nvar e = fault.New(1, \"a test\")\n",
		"a/problem.go": "package a\n\nvar p = P{Title: \"No answer\"}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	found := goMessages(r)
	page, err := pageMessages(fstest.MapFS{"web/src/a.tsx": {Data: []byte("// a comment here\nconst a = <p>Not\n  sent: {n} more times</p>\nx('It failed.', `of ${n} in all`)\n")}})
	maps.Copy(found, page)

	want := "== a\n7 is no\nNo answer\nnumber at all\n\n== cmd/x\nit %s fails\n\n== web/src/a.tsx\nIt failed.\nNot sent:\nmore times\nof %s in all\n\n"
	if got := messageText(found); err != nil || got != want {
		t.Errorf("messageText() = %q, %v, want %q", got, err, want)
	}
	if bad := badMessages(found); len(bad) != 1 || !strings.HasPrefix(bad[0], `a: "is no" in "7 is no"`) {
		t.Errorf("badMessages() = %q, want one", bad)
	}
	if got := listDifference("== a\nold one\n", "== a\nnew one\n"); !slices.Equal(got, []string{"gone: a: old one", "new: a: new one"}) {
		t.Errorf("listDifference() = %q", got)
	}
}
