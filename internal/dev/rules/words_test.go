package rules_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// bannedWords reads testdata/banned_words.txt: one word per line, and after "after"
// the words that it may follow.
func bannedWords() (map[string]string, error) {
	text, err := os.ReadFile("testdata/banned_words.txt")
	banned := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		word, allowed, _ := strings.Cut(strings.TrimSpace(line), " after ")
		banned[word] = allowed
	}
	return banned, err
}

// words splits an identifier, a path or a text into words in lower case:
// letterFilter, letter_filter and "letter filter" are the same two words.
func words(text string) []string {
	var all []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			all = append(all, strings.ToLower(string(word)))
		}
		word = nil
	}
	before := ' '
	for _, r := range text {
		if !unicode.IsLetter(r) {
			end()
		} else {
			if unicode.IsUpper(r) && !unicode.IsUpper(before) {
				end()
			}
			word = append(word, r)
		}
		before = r
	}
	end()
	return all
}

// plainWords finds banned words in file names, in the names that a file
// declares, and in comments.
func plainWords(r repo) []string {
	banned, err := bannedWords()
	if err != nil {
		return []string{err.Error()}
	}
	var broken []string
	check := func(where, text string) {
		before := ""
		for _, word := range words(text) {
			allowed, found := banned[word]
			if !found {
				allowed, found = banned[strings.TrimSuffix(word, "s")]
			}
			if found && (allowed == "" || allowed != before) {
				broken = append(broken, fmt.Sprintf("%s: %q is a metaphor; docs/glossary.md has the field's words", where, word))
			}
			before = word
		}
	}
	for _, f := range r.files {
		if f.generated {
			continue
		}
		check(f.path, strings.TrimSuffix(path.Base(f.path), ".go"))
		for _, group := range f.tree.Comments {
			check(r.at(group.Pos(), "comment"), group.Text())
		}
		declaredNames(f, func(name *ast.Ident) { check(r.at(name.Pos(), "%s", name.Name), name.Name) })
	}
	return broken
}

// declaredNames visits the names that a file declares.
func declaredNames(f file, visit func(*ast.Ident)) {
	fields := func(list *ast.FieldList) {
		if list == nil {
			return
		}
		for _, field := range list.List {
			for _, name := range field.Names {
				visit(name)
			}
		}
	}
	ast.Inspect(f.tree, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.FuncDecl:
			visit(n.Name)
			fields(n.Recv)
		case *ast.FuncType:
			fields(n.Params)
			fields(n.Results)
		case *ast.StructType:
			fields(n.Fields)
		case *ast.TypeSpec:
			visit(n.Name)
		case *ast.ValueSpec:
			for _, name := range n.Names {
				visit(name)
			}
		case *ast.AssignStmt:
			for _, target := range n.Lhs {
				if name, ok := target.(*ast.Ident); ok && n.Tok == token.DEFINE {
					visit(name)
				}
			}
		}
		return true
	})
}

// commentsSayMore finds comments of exported names that only repeat the name.
func commentsSayMore(r repo) []string {
	var broken []string
	for _, f := range r.files {
		if f.test || f.generated {
			continue
		}
		check := func(name *ast.Ident, doc *ast.CommentGroup) {
			if name.IsExported() && circular(name.Name, doc.Text()) {
				broken = append(broken, r.at(name.Pos(), "the comment of %s only repeats its name; say units, errors, limits or the source", name.Name))
			}
		}
		for _, decl := range f.tree.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				check(d.Name, d.Doc)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if t, ok := spec.(*ast.TypeSpec); ok {
						doc := t.Doc
						if doc == nil {
							doc = d.Doc
						}
						check(t.Name, doc)
					}
				}
			}
		}
	}
	return broken
}

// circular reports whether a comment has no word that is neither in the name nor
// a filler.
func circular(name, comment string) bool {
	const fillers = " a an and are as at be by for from has have if in is it its of on one or return returns that the this to was what which who with report reports whether "
	own := words(name)
	for _, word := range words(comment) {
		repeated := slices.ContainsFunc(own, func(part string) bool { return stem(word) == stem(part) })
		if !repeated && !strings.Contains(fillers, " "+word+" ") {
			return false
		}
	}
	return comment != ""
}

// stem cuts the endings by which a verb or a noun in a comment differs from the
// one in a name.
func stem(word string) string {
	for _, ending := range []string{"ing", "ies", "es", "ed", "s", "e", "y"} {
		if cut, ok := strings.CutSuffix(word, ending); ok && len(cut) >= 3 {
			return cut
		}
	}
	return word
}

func TestCircular(t *testing.T) {
	t.Parallel()

	for comment, want := range map[string]bool{
		"ListTools lists the tools.":                      true,
		"ListTools returns the list of tools.":            true,
		"ListTools lists the tools in order of name.":     false,
		"ListTools lists tools. Its error is fault.Busy.": false,
		"": false,
	} {
		if got := circular("ListTools", comment); got != want {
			t.Errorf("circular(ListTools, %q) = %t, want %t", comment, got, want)
		}
	}
}
