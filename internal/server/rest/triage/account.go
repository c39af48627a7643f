// Package triage handles requests about the mail that triage reads: accounts,
// runs, messages, and corrections.
package triage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
)

// ForAllTools rejects tokens that are restricted to some tools: mail belongs
// to no tool, and an account names the tools that triage proposes.
func ForAllTools(handle request.Handler) request.Handler {
	return func(c *request.Call) error {
		if c.By.Tools != nil {
			return fault.New(fault.Denied, "the token covers only some tools; mail and its accounts need a token for all tools")
		}
		return handle(c)
	}
}

// view is an account as people see it.
type view struct {
	wire.TriageAccount
	version int64
}

// accounts is the collection of mail accounts.
var accounts = request.Collection[view]{
	Name: "triage-accounts", Noun: "triage account",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]view, error) {
		all, err := account.List(ctx, tx, c.By.Tenant, c.Named("name")...)
		if err != nil {
			return nil, err
		}
		views := make([]view, len(all))
		for i, a := range all {
			if views[i], err = viewOf(a); err != nil {
				return nil, err
			}
		}
		return views, nil
	},
	Key:     func(v view) string { return v.Name },
	ETag:    func(v *view) *string { return &v.ETag },
	Version: func(v view) any { return []any{v.ID, v.version} },
}

// viewOf returns an account without its password.
func viewOf(a account.Account) (view, error) {
	v := view{version: a.Version, TriageAccount: wire.TriageAccount{
		ID: a.ID, Name: a.Name, Kind: string(a.Kind), SecretFrom: a.SecretFrom, HasSecret: len(a.Secret) > 0, Enabled: a.Enabled,
		Every: envelope.Duration(a.Every), BackfillDays: a.BackfillDays, CreatedAt: a.CreatedAt.UTC(), UpdatedAt: a.UpdatedAt.UTC(),
	}}
	if a.Operator != uuid.Nil {
		v.Operator = &a.Operator
	}
	return v, errors.Join(convert(a.Connection, &v.Connection), convert(a.Settings, &v.Settings), convert(a.Proposals, &v.Proposals), convert(a.Texts, &v.Texts))
}

// convert copies between two types that have the same JSON.
func convert(from, into any) error {
	raw, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// Accounts handles GET /api/v1/triage/accounts. It lists the mail accounts.
func Accounts(c *request.Call) error { return accounts.List(c) }

// Account handles GET /api/v1/triage/accounts/{name}. It shows a mail account.
func Account(c *request.Call) error { return accounts.Show(c, c.R.PathValue("name")) }

// PutAccount handles PUT /api/v1/triage/accounts/{name}. It makes or changes a
// mail account.
func PutAccount(c *request.Call, in wire.TriageAccountInput) error {
	name := c.R.PathValue("name")
	return accounts.Put(c, name, "triage account "+name+" stored", func(ctx context.Context, tx pgx.Tx) error {
		old, err := account.Get(ctx, tx, c.By.Tenant, name)
		if err != nil && !errors.Is(err, fault.NotFound) {
			return err
		}
		a, err := accountOf(in, name, old.ID)
		if err != nil {
			return err
		}
		word, err := setSecret(c, &a, old, in.Secret)
		if err != nil {
			return err
		}
		// The operator needs nobody to agree when they undo what triage did.
		if a.Operator != uuid.Nil && a.Operator != old.Operator && !c.By.MayLoosen() {
			return fault.Coded(wire.CodeLoosens, fault.Denied, "naming another operator of a mail account needs an administrator's token with the scope policy:write")
		}
		c.Detail = map[string]any{"operator_id": request.NilIfZero(a.Operator), "kind": a.Kind, "enabled": a.Enabled, "observe_only": a.Settings.ObserveOnly, "source": request.NilIfZero(a.Proposals.Source), "secret": word}
		return account.Put(ctx, tx, c.By.Tenant, a)
	})
}

// accountOf returns the account in a body, with a new id if it has none.
func accountOf(in wire.TriageAccountInput, name string, id uuid.UUID) (account.Account, error) {
	if id == uuid.Nil {
		id = uuid.Must(uuid.NewV7())
	}
	a := account.Account{
		ID: id, Name: name, Kind: account.Kind(in.Kind), SecretFrom: in.SecretFrom, Enabled: in.Enabled == nil || *in.Enabled,
		Every: account.DefaultEvery, BackfillDays: account.DefaultBackfillDays,
	}
	if in.Every != nil {
		a.Every = time.Duration(*in.Every)
	}
	if in.BackfillDays != nil {
		a.BackfillDays = *in.BackfillDays
	}
	if in.Operator != nil {
		a.Operator = *in.Operator
	}
	settings, proposals, texts := cmp.Or(in.Settings, &wire.TriageSettings{}), cmp.Or(in.Proposals, &wire.TriageProposals{}), cmp.Or(in.Texts, &wire.TriageTextSettings{})
	err := errors.Join(convert(in.Connection, &a.Connection), convert(settings, &a.Settings), convert(proposals, &a.Proposals), convert(texts, &a.Texts))
	return a, err
}

// setSecret sets the password that is given, or keeps the stored one, and
// returns which. A stored password is sent to no other server.
func setSecret(c *request.Call, a *account.Account, old account.Account, given string) (word string, err error) {
	switch {
	case given != "":
		a.Secret, err = account.Cipher{Key: c.MailKey}.Encrypt(c.By.Tenant, a.ID, given)
		return "given", err
	case a.SecretFrom != "":
		return "from elsewhere", nil
	case len(old.Secret) == 0:
		return "none", nil
	case a.Kind != old.Kind || !a.Connection.SameServer(old.Connection):
		return "", request.Invalid("/secret", envelope.RuleRequired, "the server, the user or the protection of the connection changes: give the password again")
	}
	a.Secret = old.Secret
	return "kept", nil
}

// DeleteAccount handles DELETE /api/v1/triage/accounts/{name}. It deletes a
// mail account.
func DeleteAccount(c *request.Call) error {
	name := c.R.PathValue("name")
	return accounts.Delete(c, name, "triage account "+name+" deleted", func(ctx context.Context, tx pgx.Tx) error {
		return account.Delete(ctx, tx, c.By.Tenant, name)
	})
}

// PurgeAccount handles POST /api/v1/triage/accounts/{name}/purge. It erases a set
// of the data of triage about a mail account.
func PurgeAccount(c *request.Call, in wire.TriagePurgeRequest) error {
	name := c.R.PathValue("name")
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.TriagePurge, error) {
		if in.DryRun {
			return account.Held(ctx, tx, c.By.Tenant, name)
		}
		p, err := account.Purge(ctx, tx, c.By.Tenant, name)
		if err != nil || p.Rows == (wire.TriageRows{}) && !p.Done {
			return p, err
		}
		c.Detail = map[string]any{"rows": p.Rows, "done": p.Done}
		return p, c.RecordChange(ctx, tx, "triage account "+name+" purged")
	})
}

// cursorExport is the name in cursors of the list of exported rows.
const cursorExport = "triage-export"

// ExportAccount handles GET /api/v1/triage/accounts/{name}/export. It lists the
// data of triage about a mail account.
func ExportAccount(c *request.Call) error {
	limit, err := c.Limit()
	if err != nil {
		return err
	}
	at, err := exportPlace(c.Query.Get("cursor"))
	if err != nil {
		return err
	}
	page := wire.Page[json.RawMessage]{Items: []json.RawMessage{}}
	if err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		a, err := account.Get(ctx, tx, c.By.Tenant, c.R.PathValue("name"))
		if err != nil {
			return err
		}
		rows, next, err := inspect.Export(ctx, tx, c.By.Tenant, a.ID, at, limit)
		page.Items = append(page.Items, rows...)
		if next != nil {
			page.NextCursor = new(request.WriteTextCursor(cursorExport, strconv.Itoa(next.Kind)+"/"+next.After))
		}
		return err
	}); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, page)
}

// exportPlace returns the place of a cursor; "" is the beginning.
func exportPlace(cursor string) (at inspect.ExportPlace, err error) {
	if cursor == "" {
		return at, nil
	}
	text, err := request.ParseTextCursor(cursorExport, cursor, "/query/cursor")
	if err != nil {
		return at, err
	}
	kind, after, ok := strings.Cut(text, "/")
	at.After = after
	if at.Kind, err = strconv.Atoi(kind); err != nil || !ok || !at.Valid() {
		return at, request.Invalid("/query/cursor", envelope.RuleFormat, "is not a cursor of this list; send next_cursor unchanged, or omit it to start over")
	}
	return at, nil
}
