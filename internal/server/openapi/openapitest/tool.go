package openapitest

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/jsonref"
)

// NamesTools reports whether an operation names tools, sources or patterns of
// tools in its path or its body.
func (c *Contract) NamesTools(path, method string) bool {
	if strings.Contains(path, "{tool}") || strings.HasPrefix(path, "/api/v1/sources/") {
		return true
	}
	return namesTools(c.whole, c.Paths[path][method].Body, make(map[string]bool))
}

// namesTools looks for properties that name tools below a part of the file. An
// envelope, which is a file of its own, names its tool.
func namesTools(whole, part any, seen map[string]bool) bool {
	switch p := part.(type) {
	case []any:
		return slices.ContainsFunc(p, func(item any) bool { return namesTools(whole, item, seen) })
	case map[string]any:
		if ref, ok := p["$ref"].(string); ok && !seen[ref] {
			seen[ref] = true
			pointer, local := strings.CutPrefix(ref, "#")
			path, ok := jsonref.ParsePointer(pointer)
			if !local || !ok {
				return true
			}
			found, _ := path.Find(whole)
			return namesTools(whole, found, seen)
		}
		if properties, ok := p["properties"].(map[string]any); ok {
			for _, name := range []string{"tool", "tools", "source"} {
				if _, ok := properties[name]; ok {
					return true
				}
			}
		}
		if words, ok := p["enum"].([]any); ok && slices.Contains(words, any("tool")) {
			return true
		}
		for _, item := range p {
			if namesTools(whole, item, seen) {
				return true
			}
		}
	}
	return false
}
