package request

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Handler answers a request.
type Handler func(*Call) error

// WithBody returns a Handler that decodes the body for handle.
func WithBody[T any](handle func(*Call, T) error) Handler {
	return func(c *Call) error {
		var body T
		if err := c.Decode(&body); err != nil {
			return err
		}
		return handle(c, body)
	}
}

// WithAction returns a Handler that reads the action's id in the path for
// handle.
func WithAction(handle func(*Call, envelope.ActionID) error) Handler {
	return func(c *Call) error {
		var id envelope.ActionID
		if err := id.UnmarshalText([]byte(c.R.PathValue("id"))); err != nil {
			return err
		}
		return handle(c, id)
	}
}

// WithBodyAndAction returns a Handler that decodes the body, and then reads the
// id of the action in the path; either error answers the request.
func WithBodyAndAction[T any](handle func(*Call, T, envelope.ActionID) error) Handler {
	return WithBody(func(c *Call, body T) error {
		return WithAction(func(c *Call, id envelope.ActionID) error { return handle(c, body, id) })(c)
	})
}

// WithTool returns a Handler that reads the tool in the path, as source:name,
// for handle. Tools that the caller's token is not for do not exist.
func WithTool(handle func(*Call, policy.Key) error) Handler {
	return func(c *Call) error {
		key, err := policy.ParseKey(c.R.PathValue("tool"))
		if err != nil {
			return fault.New(fault.NotFound, "the path must name the tool as source:name, with a slash in the name written as %%2F")
		}
		if c.By.Tools != nil && !policy.Covers(c.By.Tools, key) {
			return c.Suggest(NounTool, key.String(), catalog.ErrNoTool)
		}
		err = handle(c, key)
		if errors.Is(err, catalog.ErrNoTool) {
			return c.Suggest(NounTool, key.String(), err)
		}
		return err
	}
}

// WithBodyAndTool returns a Handler that decodes the body, and then reads the
// tool in the path; either error answers the request.
func WithBodyAndTool[T any](handle func(*Call, T, policy.Key) error) Handler {
	return WithBody(func(c *Call, body T) error {
		return WithTool(func(c *Call, key policy.Key) error { return handle(c, body, key) })(c)
	})
}

// Read returns the result of fn in a transaction of the caller's tenant.
func Read[T any](c *Call, fn func(ctx context.Context, tx pgx.Tx) (T, error)) (v T, err error) {
	err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		v, err = fn(ctx, tx)
		return err
	})
	return v, err
}

// Answer writes the result of fn in a transaction of the caller's tenant.
func Answer[T any](c *Call, fn func(ctx context.Context, tx pgx.Tx) (T, error)) error {
	return c.Result(Read(c, fn))
}

// Result answers with the value of a call, or returns its error.
func (c *Call) Result(v any, err error) error {
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, v)
}

// AnswerItems is Answer for a list that has no pages.
func AnswerItems[T any](c *Call, fn func(ctx context.Context, tx pgx.Tx) ([]T, error)) error {
	all, err := Read(c, fn)
	if err != nil {
		return err
	}
	return Items(c, all)
}

// AnswerPage writes a page of a list whose items have ids that sort by time.
// read returns at most limit items, beginning after the id after.
func AnswerPage[R, T any](c *Call, list string, read func(ctx context.Context, tx pgx.Tx, after envelope.ActionID, limit int) ([]R, error), show func(R) T, id func(R) envelope.ActionID) error {
	after, limit, err := c.Page(list)
	if err != nil {
		return err
	}
	rows, err := Read(c, func(ctx context.Context, tx pgx.Tx) ([]R, error) { return read(ctx, tx, after, limit+1) })
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, PageOf(rows, limit, list, show, id))
}
