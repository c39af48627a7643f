package triage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/evaluate"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// asked are the flags about language models.
type asked struct {
	urls, names   []string
	dialect, file string
	limit         int
}

func (m *asked) flags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&m.urls, "model", nil, "`URL` of a model server; several are compared (repeatable)")
	cmd.Flags().StringArrayVar(&m.names, "model-name", nil, "`name` of the model; one for each --model, in order (repeatable)")
	cmd.Flags().StringVar(&m.dialect, "dialect", string(model.Auto), "API dialect of the servers of --model")
	cmd.Flags().StringVar(&m.file, "models", "", "models `file`; see docs/triage-models.md")
	cmd.Flags().IntVar(&m.limit, "limit", 0, "maximum `number` of messages per set; 0 means all")
}

// open opens the models. The function that it returns has to be called in any
// case.
func (m *asked) open(ctx context.Context) (all []evaluate.Backend, closeAll func(), err error) {
	var sets []*model.Set
	closeAll = func() {
		for _, s := range sets {
			s.Close()
		}
	}
	configs, err := m.configs(ctx)
	if err != nil {
		return nil, closeAll, err
	}
	for _, n := range configs {
		set, err := model.Open(n.config, model.Observer{})
		if err != nil {
			return nil, closeAll, command.Misuse("%v", err)
		}
		sets = append(sets, set)
		calibrations, err := cascade.OpenCalibrations(n.config.Calibrations)
		if err != nil {
			return nil, closeAll, command.Misuse("%v", err)
		}
		b, err := evaluate.OpenBackend(ctx, n.name, set)
		if err != nil {
			return nil, closeAll, err
		}
		b.Calibrations = calibrations
		all = append(all, b)
	}
	return all, closeAll, nil
}

// named is a configuration of models, and the title of its figures.
type named struct {
	name   string
	config model.Config
}

func (m *asked) configs(ctx context.Context) ([]named, error) {
	switch {
	case m.limit < 0:
		return nil, command.Misuse("--limit must be a number of messages")
	case len(m.names) > 0 && len(m.names) != len(m.urls):
		return nil, command.Misuse("got %d --model-name and %d --model: name all models or none", len(m.names), len(m.urls))
	case !slices.Contains(model.Dialects(), model.Dialect(m.dialect)):
		return nil, command.Misuse("unknown --dialect %s; known dialects: %v", m.dialect, model.Dialects())
	}
	var all []named
	if m.file != "" {
		c, err := model.ReadConfig(m.file)
		if err != nil {
			return nil, command.Misuse("%v", err)
		}
		all = append(all, named{m.file, c})
	}
	for i, url := range m.urls {
		server := model.ServerConfig{URL: url, Dialect: model.Dialect(m.dialect)}
		name := ""
		if len(m.names) > 0 {
			name = m.names[i]
		}
		name, err := nameOf(ctx, server, name)
		if err != nil {
			return nil, err
		}
		c := model.Config{Servers: map[string]model.ServerConfig{"server": server}, Tiers: map[string]model.TierConfig{}}
		for _, tier := range cascade.Tiers() {
			c.Tiers[string(tier)] = model.TierConfig{Server: "server", Model: name}
		}
		all = append(all, named{command.Safe(title(all, name)), c})
	}
	return all, nil
}

// title returns a name that no other back end has.
func title(all []named, name string) string {
	text := name
	for n := 2; slices.ContainsFunc(all, func(other named) bool { return other.name == text }); n++ {
		text = fmt.Sprintf("%s (%d)", name, n)
	}
	return text
}

// nameOf returns the name of a server's model: that which was given, or the only
// one that it lists.
func nameOf(ctx context.Context, server model.ServerConfig, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	names, err := model.Names(ctx, server)
	if err != nil {
		return "", command.Misuse("--model %s: %v", server.URL, err)
	}
	if len(names) != 1 {
		return "", command.Misuse("--model %s has %s; choose one with --model-name", server.URL, cmp.Or(strings.Join(names, ", "), "no list of models"))
	}
	return names[0], nil
}
