package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
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
		a.Note("%s It is done.", summary)
	case len(rows) == 0:
		a.Note("%s There is nothing to do.", summary)
	default:
		a.Note("%s Nothing was changed; add --apply to do it. To have it refused if somebody changes the settings first, add --if-match %s.", summary, done.ETag)
	}
	return nil
}

// changeText shows what a setting is set to, or was.
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
		cmd.Flags().StringVarP(&file, "file", "f", "", "the `file`, or - for standard input (required)")
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
	set.Flags().StringVar(&ifMatch, "if-match", "", "refuse the change if the settings no longer have this `tag`, which a dry run shows")
	set.Flags().BoolVar(&apply, "apply", false, "do it; without this nothing changes")
	return []*cobra.Command{show, fileFlag(check), fileFlag(set)}
}
