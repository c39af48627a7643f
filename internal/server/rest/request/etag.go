package request

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
)

// ETagOf returns the entity tag, without quotes, of the part of a resource that
// people edit: a digest of its JSON.
func ETagOf(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:18]), nil
}

// SetETag sets the header ETag of the answer.
func (c *Call) SetETag(tag string) { c.W.Header().Set("ETag", `"`+tag+`"`) }

// IfMatch returns the entity tag of the header If-Match, without quotes; "" if
// the request has none. The contract admits one strong tag.
func (c *Call) IfMatch() string { return strings.Trim(c.R.Header.Get("If-Match"), `"`) }

// CheckMatch returns nil if the request has neither If-Match nor If-None-Match,
// or if they fit the entity tag that current returns: If-Match holds it, and
// If-None-Match is for a resource that does not exist. Otherwise the error is
// fault.Stale.
func (c *Call) CheckMatch(current func() (string, error)) error {
	want, create := c.IfMatch(), c.R.Header.Get("If-None-Match") != ""
	if want == "" && !create {
		return nil
	}
	tag, err := current()
	if err != nil && !errors.Is(err, fault.NotFound) {
		return err
	}
	if create && err == nil {
		return fault.Coded(wire.CodeStale, fault.Stale, "this exists already, and If-None-Match is for a new one; read it, and send its ETag in If-Match to change it")
	}
	if want != "" && tag != want {
		return fault.Coded(wire.CodeStale, fault.Stale, "this was changed since it was read: the ETag in If-Match is outdated; read it again, and repeat the change")
	}
	return nil
}

// RequireMatch returns fault.Unconditional if the request has no If-Match.
func (c *Call) RequireMatch() error {
	if c.IfMatch() == "" {
		return fault.New(fault.Unconditional, "this replaces the whole document; read it, and send its ETag in If-Match")
	}
	return nil
}

// LockConfiguration makes changes of a tenant's configuration wait for each
// other, so that no other change comes between a comparison with If-Match and
// the write.
func (c *Call) LockConfiguration(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('configuration of ' || $1, 0))", c.By.Tenant.String())
	return err
}
