package request

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/server/openapi"
)

// Show answers with a resource that people edit as a whole, and its ETag.
func Show[T any](c *Call, read func(context.Context, pgx.Tx, envelope.TenantID) (T, error)) error {
	return c.answerTagged(http.StatusOK, func() (any, string, error) {
		v, err := Read(c, func(ctx context.Context, tx pgx.Tx) (T, error) { return read(ctx, tx, c.By.Tenant) })
		if err != nil {
			return nil, "", err
		}
		tag, err := ETagOf(v)
		return v, tag, err
	})
}

// PutDocument replaces the document that read returns, with apply, and writes
// the changes; with dry_run in the query it changes nothing. The ETag of a dry
// run is that of the current document.
func PutDocument[T, C any](c *Call, read func(context.Context, pgx.Tx, envelope.TenantID) (T, error), apply func(ctx context.Context, tx pgx.Tx, dry bool) ([]C, error)) error {
	dry := c.Query.Get("dry_run") == "true"
	if !dry {
		if err := c.RequireMatch(); err != nil {
			return err
		}
	}
	var changes []C
	var tag string
	err := c.InConfigurationTx(func(ctx context.Context, tx pgx.Tx) error {
		current := func() (string, error) {
			doc, err := read(ctx, tx, c.By.Tenant)
			if err != nil {
				return "", err
			}
			return ETagOf(doc)
		}
		err := c.CheckMatch(current)
		if err == nil {
			changes, err = apply(ctx, tx, dry)
		}
		if err != nil {
			return err
		}
		tag, err = current()
		return err
	})
	if err != nil {
		return err
	}
	if !dry {
		c.Wake()
	}
	c.SetETag(tag)
	return c.JSON(http.StatusOK, struct {
		DryRun  bool `json:"dry_run"`
		Changes []C  `json:"changes"`
	}{dry, append([]C{}, changes...)})
}

// CheckDocument checks a document, in JSON, against the operation that accepts
// it and with its own Validate, as the API does. The error is an
// *envelope.InvalidError whose pointers are within the document.
func CheckDocument[T interface{ Validate() error }](operation string, text []byte) error {
	contract, err := openapi.Load()
	if err != nil {
		return err
	}
	op, err := contract.Operation(operation)
	if err != nil {
		return err
	}
	if err := op.CheckBody(context.Background(), text); err != nil {
		return err
	}
	var doc T
	if err := Decode(text, &doc); err != nil {
		return err
	}
	return doc.Validate()
}
