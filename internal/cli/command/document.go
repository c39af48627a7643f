package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

// Document is a document of settings that can be kept in a file.
type Document struct {
	// Get and Put are methods of the client. Validate checks a document without
	// a server; its error has pointers into the document.
	Get      func(c *client.Client, ctx context.Context) (json.RawMessage, error)
	Put      func(c *client.Client, ctx context.Context, doc json.RawMessage, o client.PutOptions) (wire.SettingChanges, error)
	Validate func(document []byte) error
}

// printYAML writes a document as YAML, with its fields in their order. JSON is
// YAML, so that its text only changes in style.
func printYAML(a *App, doc json.RawMessage) error {
	var node yaml.Node
	if err := yaml.Unmarshal(doc, &node); err != nil {
		return fmt.Errorf("write the document: %w", err)
	}
	asYAML(&node)
	text, err := yaml.Marshal(&node)
	if err != nil {
		return fmt.Errorf("write the document: %w", err)
	}
	return a.Print("%s", text)
}

// asYAML writes a node in the block style of YAML. A text that could be read as
// something else, such as a number or a time, keeps its quotes, and a text of
// several lines is a literal block.
func asYAML(node *yaml.Node) {
	node.Style &^= yaml.FlowStyle
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str" {
		switch {
		case strings.Contains(node.Value, "\n"):
			node.Style = yaml.LiteralStyle
		case !strings.ContainsAny(node.Value, "0123456789"):
			node.Style = 0
		}
	}
	if len(node.Content) == 0 && (node.Kind == yaml.SequenceNode || node.Kind == yaml.MappingNode) {
		node.Style |= yaml.FlowStyle
	}
	for _, child := range node.Content {
		asYAML(child)
	}
}

// Answered returns the error of a server with the places in the file.
func (f *File) Answered(err error) error {
	if p, ok := errors.AsType[*client.Problem](err); ok && len(p.Errors) > 0 {
		return f.Place(p.Errors)
	}
	return err
}

// ShowChanges shows what changed, or would change.
func (a *App) ShowChanges(done wire.SettingChanges) error {
	applied := !done.DryRun
	if a.JSON {
		return a.WriteJSON(struct {
			Applied bool                 `json:"applied"`
			Changes []wire.SettingChange `json:"changes"`
			ETag    string               `json:"etag"`
		}{applied, done.Changes, done.ETag})
	}
	counts := make(map[string]int)
	var rows [][]string
	for _, c := range done.Changes {
		if counts[c.Kind]++; c.Kind != wire.ChangeUnchanged {
			rows = append(rows, []string{c.Kind, c.Section, c.Name, changeText(c)})
		}
	}
	if len(rows) > 0 {
		if err := a.Table([]string{"CHANGE", "SECTION", "WHICH", "TO"}, rows); err != nil {
			return err
		}
	}
	summary := fmt.Sprintf("%d added, %d changed, %d removed, %d unchanged.", counts[wire.ChangeAdded], counts[wire.ChangeChanged], counts[wire.ChangeRemoved], counts[wire.ChangeUnchanged])
	switch {
	case applied:
		a.Note("%s Done.", summary)
	case len(rows) == 0:
		a.Note("%s Nothing to do.", summary)
	default:
		a.Note("%s Nothing was changed; add --apply to do it. To reject it if the settings change first, add --if-match %s.", summary, done.ETag)
	}
	return nil
}

// changeText shows the new or the old value of a setting.
func changeText(c wire.SettingChange) string {
	if c.Kind == wire.ChangeRemoved {
		return "was " + string(c.Was)
	}
	return strings.TrimSpace(string(c.Is))
}

// NewDocumentCommands returns the commands show, check and apply of a document
// of settings that can be kept in a file.
func (a *App) NewDocumentCommands(d Document) []*cobra.Command {
	var file, ifMatch string
	var apply bool
	fileFlag := func(cmd *cobra.Command) *cobra.Command {
		cmd.Flags().StringVarP(&file, "file", "f", "", "`file` to read, or - for standard input (required)")
		return cmd
	}
	show := New(a, "show", NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return Show(a, printYAML)(d.Get(c, ctx))
	})
	check := &cobra.Command{
		Use: "check", Args: NoArguments(),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.ReadDocument(file, d.Validate)
			return a.Done(err, "%s is in order", file)
		},
	}
	set := New(a, "apply", NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		f, err := a.ReadDocument(file, d.Validate)
		if err != nil {
			return err
		}
		done, err := d.Put(c, ctx, f.JSON, client.PutOptions{DryRun: !apply, IfMatch: ifMatch})
		if err != nil {
			return f.Answered(err)
		}
		return a.ShowChanges(done)
	})
	set.Flags().StringVar(&ifMatch, "if-match", "", "only if the settings' `ETag` still matches; a dry run prints it")
	set.Flags().BoolVar(&apply, "apply", false, "make the changes (default: a dry run)")
	return []*cobra.Command{show, fileFlag(check), fileFlag(set)}
}

// The bounds of such a file.
const (
	maxFile  = 4 << 20
	maxNodes = 200_000
	maxDepth = 50
)

// File is a document in YAML or JSON, such as limits, of which it is
// known where each field stands.
type File struct {
	name string
	JSON json.RawMessage
	// at is where a field stands, by its JSON Pointer.
	at    map[string]position
	nodes int
}

// position is a line and a column, both from 1.
type position struct{ line, column int }

// FileError holds the errors of a file, each on a line of its own that begins
// with the place.
type FileError struct{ lines []string }

// Error returns the text.
func (e *FileError) Error() string { return strings.Join(e.lines, "\n") }

// ReadDocument reads a document, and checks all that can be checked without a
// server. The errors of check have pointers into the document.
func (a *App) ReadDocument(name string, check func(document []byte) error) (*File, error) {
	if name == "" {
		return nil, Misuse("-f is required: the file, or - for standard input")
	}
	text, err := a.ReadFile(name, maxFile+1)
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s is longer than %d bytes; check that it is the right file", name, maxFile)
	}
	return parseFile(name, text, check)
}

func parseFile(name string, text []byte, check func(document []byte) error) (*File, error) {
	f := &File{name: name, at: make(map[string]position)}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var root yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return nil, f.wrong(position{1, 1}, "", "is empty")
	} else if err != nil {
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var more yaml.Node
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, f.wrong(position{max(more.Line, 1), 1}, "", "has more than one document; keep one")
	}
	value, err := f.value("", root.Content[0], 0)
	if err != nil {
		return nil, err
	}
	if f.JSON, err = json.Marshal(value); err != nil {
		return nil, fmt.Errorf("%s cannot be written as JSON", name)
	}
	err = check(f.JSON)
	if broken, ok := errors.AsType[*envelope.InvalidError](err); ok {
		err = f.Place(broken.Fields)
	}
	return f, err
}

// value converts a node to a JSON value, and records its place.
func (f *File) value(pointer string, node *yaml.Node, depth int) (any, error) {
	here := position{node.Line, node.Column}
	if _, known := f.at[pointer]; !known {
		f.at[pointer] = here
	}
	if f.nodes++; f.nodes > maxNodes || depth > maxDepth {
		return nil, f.wrong(here, pointer, "is too large or too deep a document")
	}
	switch node.Kind {
	case yaml.AliasNode:
		return f.value(pointer, node.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, len(node.Content))
		for i, child := range node.Content {
			var err error
			if list[i], err = f.value(pointer+"/"+strconv.Itoa(i), child, depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		return f.mapping(pointer, node, depth)
	case yaml.ScalarNode, yaml.DocumentNode:
	}
	if node.ShortTag() == "!!timestamp" {
		return node.Value, nil
	}
	var v any
	if err := node.Decode(&v); err != nil {
		return nil, f.wrong(here, pointer, "has an unsupported type of value")
	}
	return v, nil
}

func (f *File) mapping(pointer string, node *yaml.Node, depth int) (any, error) {
	object := make(map[string]any, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, child := node.Content[i], node.Content[i+1]
		here := position{key.Line, key.Column}
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return nil, f.wrong(here, pointer, "must have plain strings as field names")
		}
		at := pointer + "/" + envelope.EscapePointer(key.Value)
		if _, twice := object[key.Value]; twice {
			return nil, f.wrong(here, at, "is repeated; keep one")
		}
		f.at[at] = here
		value, err := f.value(at, child, depth+1)
		if err != nil {
			return nil, err
		}
		object[key.Value] = value
	}
	return object, nil
}

// Place adds places in the file to the fields of an error, also of one from the
// server.
func (f *File) Place(fields []envelope.FieldError) error {
	e := &FileError{}
	for _, field := range fields {
		near := field.Pointer
		at, ok := f.at[near]
		for !ok && near != "" {
			near = near[:strings.LastIndexByte(near, '/')]
			at, ok = f.at[near]
		}
		e.lines = append(e.lines, f.line(at, field.Pointer, field.Message))
	}
	return e
}

func (f *File) line(at position, pointer, message string) string {
	pointer = cmp.Or(pointer, "the document")
	return fmt.Sprintf("%s:%d:%d: %s %s", f.name, at.line, at.column, Line(pointer), message)
}

func (f *File) wrong(at position, pointer, message string) error {
	return &FileError{[]string{f.line(at, pointer, message)}}
}
