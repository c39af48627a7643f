package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/countersign-dev/countersign/internal/client"
	"github.com/countersign-dev/countersign/internal/limit"
)

const limitsHelp = `All limits as one document, to be kept in a file beside the code: buckets, quiet
hours, employees, tools and the tenant's settings. The do-not-contact list and
pauses are not in it.

A section that the file leaves out is left alone. One that it has is made to be
exactly that: what is missing from it is removed, and buckets are retired.`

func (a *app) limits() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Keep all limits in a file: show, check, apply",
		Long:  limitsHelp,
		Example: `  countersign limits show > limits.yaml
  countersign limits check -f limits.yaml
  countersign limits apply -f limits.yaml
  countersign limits apply -f limits.yaml --apply`,
		Args: cobra.ArbitraryArgs,
		RunE: group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(a.limitsShow(), a.limitsCheck(), a.limitsApply())
	return cmd
}

func (a *app) limitsShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show",
		Short:   "Write all limits as a file",
		Long:    "Write all limits in YAML, or with --json in JSON. \"limits apply\" of it changes\nnothing. It takes an operator's token.",
		Example: "  countersign limits show > limits.yaml",
		Args:    arguments(0, 0, ""),
		RunE: a.run(func(ctx context.Context, c *client.Client, _ []string) error {
			doc, err := c.Limits(ctx)
			if err != nil {
				return err
			}
			if a.json {
				return a.document(doc)
			}
			text, err := limitsYAML(doc)
			if err != nil {
				return err
			}
			if _, err := a.sys.Out.Write(text); err != nil {
				return fmt.Errorf("write the output: %w", err)
			}
			return nil
		}),
	}
}

// limitsYAML writes a document with its fields in their order. JSON is YAML, so
// that its text is only read again and written plainly.
func limitsYAML(doc limit.Document) ([]byte, error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("write the limits: %w", err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, fmt.Errorf("write the limits: %w", err)
	}
	asYAML(&node)
	return yaml.Marshal(&node)
}

// asYAML takes the marks of JSON off. A text that might be read as something
// else, such as a number or a time, keeps its quotes.
func asYAML(node *yaml.Node) {
	node.Style &^= yaml.FlowStyle
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str" && !strings.ContainsAny(node.Value, "0123456789") {
		node.Style = 0
	}
	if len(node.Content) == 0 && (node.Kind == yaml.SequenceNode || node.Kind == yaml.MappingNode) {
		node.Style |= yaml.FlowStyle
	}
	for _, child := range node.Content {
		asYAML(child)
	}
}

const fileFlag = "file"

func (a *app) limitsCheck() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check a file of limits without a server",
		Long: `Check a file of limits, in YAML or JSON, without a server. What is wrong is
named as file:line:column with the field. Whether a bucket or a tool that it
names is there, only "limits apply" can tell.`,
		Example: "  countersign limits check -f limits.yaml",
		Args:    arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if file == "" {
				return misuse("-f says which file; - is standard input")
			}
			if _, err := a.readLimitsFile(file); err != nil {
				return err
			}
			return a.done(nil, "%s is in order", file)
		},
	}
	cmd.Flags().StringVarP(&file, fileFlag, "f", "", "the `file`, or - for standard input (required)")
	return cmd
}

func (a *app) limitsApply() *cobra.Command {
	var file string
	var apply bool
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Make the limits what a file says",
		Long: `Make the limits what a file says, all of it or nothing. Without --apply it shows
what would change, and changes nothing. It takes an administrator's token.`,
		Example: "  countersign limits apply -f limits.yaml\n  countersign limits apply -f limits.yaml --apply",
		Args:    arguments(0, 0, ""),
		RunE: a.run(func(ctx context.Context, c *client.Client, _ []string) error {
			if file == "" {
				return misuse("-f says which file; - is standard input")
			}
			f, err := a.readLimitsFile(file)
			if err != nil {
				return err
			}
			changes, err := c.PutLimits(ctx, f.json, !apply)
			if p, ok := errors.AsType[*client.Problem](err); ok && len(p.Errors) > 0 {
				return f.place(p.Errors)
			}
			if err != nil {
				return err
			}
			return a.showChanges(changes, apply)
		}),
	}
	cmd.Flags().StringVarP(&file, fileFlag, "f", "", "the `file`, or - for standard input (required)")
	cmd.Flags().BoolVar(&apply, "apply", false, "do it; without this nothing changes")
	return cmd
}

// showChanges says what changed, or would.
func (a *app) showChanges(changes []limit.Change, applied bool) error {
	if a.json {
		return a.document(struct {
			Applied bool           `json:"applied"`
			Changes []limit.Change `json:"changes"`
		}{applied, changes})
	}
	counts := make(map[limit.ChangeKind]int)
	var rows [][]string
	for _, c := range changes {
		if counts[c.Kind]++; c.Kind != limit.Unchanged {
			rows = append(rows, []string{string(c.Kind), c.Section, c.Name, changeText(c)})
		}
	}
	if len(rows) > 0 {
		if err := table(a.sys.Out, []string{"CHANGE", "SECTION", "WHICH", "TO"}, rows); err != nil {
			return err
		}
	}
	summary := fmt.Sprintf("%d added, %d changed, %d removed, %d unchanged.", counts[limit.Added], counts[limit.Changed], counts[limit.Removed], counts[limit.Unchanged])
	switch {
	case applied:
		a.note("%s It is done.", summary)
	case len(rows) == 0:
		a.note("%s There is nothing to do.", summary)
	default:
		a.note("%s Nothing was changed; add --apply to do it.", summary)
	}
	return nil
}

// changeText writes what a setting becomes.
func changeText(c limit.Change) string {
	switch c.Kind {
	case limit.Removed:
		return "was " + string(c.Was)
	case limit.Added, limit.Changed, limit.Unchanged:
	}
	return strings.TrimSpace(string(c.Is))
}
