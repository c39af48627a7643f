package rest

import (
	"context"
	"slices"

	"github.com/countersign-dev/countersign/internal/source"
)

// Source is an executor.Source of a fixed set of tools, called over a Client.
type Source struct {
	client *Client
	tools  *Toolbox
}

// NewSource returns a source. It fails if a tool's input schema does not
// compile.
func NewSource(client *Client, tools ...Tool) (*Source, error) {
	box, err := NewToolbox(tools...)
	if err != nil {
		return nil, err
	}
	return &Source{client: client, tools: box}, nil
}

// List implements executor.Source. The tools are known beforehand, so that
// nothing is asked of the provider.
func (s *Source) List(ctx context.Context) ([]source.Tool, error) {
	return s.client.List(ctx, func(context.Context) ([]source.Tool, error) {
		return slices.Clone(s.tools.Tools()), nil
	})
}

// Execute implements executor.Source.
func (s *Source) Execute(ctx context.Context, call source.Call) source.Outcome {
	return s.client.Execute(ctx, call, func(ctx context.Context) Finding { return s.tools.Run(ctx, call) })
}

// Close implements executor.Source.
func (s *Source) Close() error { return s.client.Close() }

var _ source.Source = (*Source)(nil)
