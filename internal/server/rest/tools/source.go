package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/connection/login"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// sourceView is a source without its credentials.
type sourceView struct {
	wire.Source
	// secret is the encrypted credentials, only for the entity tag.
	secret []byte
}

func sourceFrom(src catalog.Source) sourceView {
	shown := sourceView{secret: src.Secret, Source: wire.Source{
		ID: src.ID, Kind: src.Kind, Config: src.Config, HasCredentials: len(src.Secret) > 0,
		DefaultRisk: string(src.DefaultRisk), Enabled: src.Enabled, DriftGuard: string(src.DriftGuard), Quarantine: src.Quarantine,
		ListedAt: postgres.UTC(src.ListedAt), LeftOut: src.LeftOut, LeftOutTools: src.LeftOutTools, UncheckedTools: src.UncheckedTools, SkippedLines: src.SkippedLines, AddressAccepted: !src.Moved(),
		Quarantined: src.Unaccepted,
	}}
	shown.OnLostLogin = string(cmp.Or(src.OnLostLogin, catalog.LostLoginWaits))
	if l := src.Login; l != nil {
		shown.Login = &wire.SourceLogin{
			Issuer: l.Issuer, Scope: l.Scope, LoginBy: l.By, LoginAt: l.At.UTC(), ExpiresAt: postgres.UTC(l.ExpiresAt), LostAt: postgres.UTC(l.LostAt), LostReason: postgres.OrNull(l.LostReason),
			NeededScopes: append([]string{}, l.NeededScopes...), NeededTools: append([]string{}, l.NeededTools...),
		}
	}
	if src.ListError != "" {
		shown.ListError = &src.ListError
	}
	return shown
}

// sources is the collection of sources.
var sources = request.Collection[sourceView]{
	Name: "sources", Noun: request.NounSource,
	Read: readSources,
	Key:  func(src sourceView) string { return src.ID },
	ETag: func(src *sourceView) *string { return &src.ETag },
	Version: func(src sourceView) any {
		var login time.Time
		if src.Login != nil {
			login = src.Login.LoginAt
		}
		return []any{src.ID, src.Kind, src.Config, src.secret, login, src.OnLostLogin, src.DefaultRisk, src.Enabled, src.DriftGuard, src.Quarantine, src.AddressAccepted, src.Quarantined}
	},
}

// readSources reads the sources, each with its tools.
func readSources(ctx context.Context, tx pgx.Tx, c *request.Call) ([]sourceView, error) {
	all, err := catalog.Sources(ctx, tx, c.By.Tenant)
	if err != nil {
		return nil, err
	}
	cache := c.Catalog
	if c.R.Method != http.MethodGet {
		cache = settings.NewCache() // settings that are not committed yet may never be
	}
	snap, err := cache.Current(ctx, tx, c.By.Tenant)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(src catalog.Source) bool { return !policy.CoversSource(c.By.Tools, src.ID) })
	shown := request.Map(all, sourceFrom)
	for i := range shown {
		shown[i].offer(snap, c.By.Tools)
	}
	return shown, nil
}

// maxDenied bounds the tools that an answer names as denied.
const maxDenied = 100

// offer sets the tools of the source that some patterns cover, and which of them
// are denied as dangerous; nil is all tools.
func (src *sourceView) offer(snap *settings.Settings, within []string) {
	src.LeftOutTools = slices.DeleteFunc(slices.Clone(src.LeftOutTools), func(t wire.LeftOutTool) bool {
		return within != nil && !policy.Covers(within, policy.Key{Source: src.ID, Action: t.Name})
	})
	var denied wire.DeniedTools
	for _, t := range snap.Tools() {
		if t.Key.Source != src.ID || !snap.Offers(t) || !t.Within(within) {
			continue
		}
		src.Tools++
		if t.Quarantined {
			src.QuarantinedTools++
		}
		if by := (settings.Viewer{}); snap.DeniedAsDanger(t, snap.Decide(t, by.Proposal(t))) {
			if denied.Count++; denied.Count <= maxDenied {
				denied.Tools = append(denied.Tools, t.Key.Action)
			}
		}
	}
	if denied.Count > 0 {
		denied.Message = fmt.Sprintf("%d of %d tools are denied and hidden from agents, because their risk is danger. "+
			"To have a person asked about each call instead: countersign policy danger require_approval", denied.Count, src.Tools)
		src.Denied = &denied
	}
}

// Sources handles GET /api/v1/sources. It lists the sources.
func Sources(c *request.Call) error { return sources.List(c) }

// sourceBody is the body of a source.
type sourceBody struct {
	Kind        string
	Config      json.RawMessage
	Credentials *connection.Credentials
	DefaultRisk policy.ToolRisk `json:"default_risk"`
	Enabled     *bool
	// DriftGuard and Quarantine are unchanged if omitted, so that storing a source
	// again does not loosen them by accident. A new source that defines its own
	// tools has a quarantine.
	DriftGuard catalog.DriftGuard `json:"drift_guard"`
	Quarantine *bool
	// OnLostLogin is unchanged if omitted.
	OnLostLogin catalog.OnLostLogin `json:"on_lost_login"`
}

// PutSource handles PUT /api/v1/sources/{id}. It sets a source.
func PutSource(c *request.Call, in sourceBody) error {
	if err := connection.CheckConfig(in.Kind, in.Config); err != nil {
		return err
	}
	if in.Credentials != nil {
		if err := connection.CheckCredentials(in.Kind, *in.Credentials); err != nil {
			return err
		}
	}
	src := catalog.Source{
		ID: c.R.PathValue("id"), Kind: in.Kind, Config: in.Config, DefaultRisk: in.DefaultRisk, Enabled: in.Enabled == nil || *in.Enabled,
	}
	return sources.Put(c, src.ID, "source "+src.ID+" stored", func(ctx context.Context, tx pgx.Tx) error {
		old, err := currentSource(ctx, tx, c, src.ID)
		if err != nil {
			return err
		}
		src.DriftGuard, src.Quarantine = cmp.Or(in.DriftGuard, old.DriftGuard, catalog.GuardFull), old.Quarantine || connection.Discovered(src.Kind) && !connection.Discovered(old.Kind)
		src.OnLostLogin = cmp.Or(in.OnLostLogin, old.OnLostLogin, catalog.LostLoginWaits)
		// Tokens are never sent to another address.
		if src.Kind == old.Kind && catalog.SameAddress(src.Config, old.Config) {
			src.Login = old.Login
		} else if _, err := login.Remove(ctx, tx, c.By.Tenant, src.ID, true); err != nil {
			return err
		}
		if in.Quarantine != nil {
			src.Quarantine = *in.Quarantine
		}
		if src.Secret, err = encryptCredentials(c, src, old, in.Credentials); err != nil {
			return err
		}
		// Only a caller with policy:write may accept the address of a source; the
		// comparison would refuse others.
		src.Unaccepted = !access.ChangesFreely(c.By) && (old.Unaccepted || !src.SamePlace(old))
		c.Detail = sourceDetail(src, in.Credentials)
		return catalog.PutSource(ctx, tx, c.By.Tenant, src)
	})
}

// AcceptSource handles POST /api/v1/sources/{id}/accept. It accepts the
// current address of a source.
func AcceptSource(c *request.Call) error {
	if c.IfMatch() == "" {
		return fault.New(fault.Unconditional, "read the source's configuration, and send its ETag in If-Match")
	}
	id := c.R.PathValue("id")
	return sources.Put(c, id, "address of source "+id+" accepted", func(ctx context.Context, tx pgx.Tx) error {
		src, err := currentSource(ctx, tx, c, id)
		if err != nil {
			return err
		}
		c.Detail = map[string]any{"kind": src.Kind, "config": redact.JSON(src.Config)}
		return catalog.AcceptSource(ctx, tx, c.By.Tenant, src)
	})
}

// DeleteSource handles DELETE /api/v1/sources/{id}. It deletes a source.
func DeleteSource(c *request.Call) error {
	id := c.R.PathValue("id")
	return sources.Delete(c, id, "source "+id+" removed", func(ctx context.Context, tx pgx.Tx) error {
		return catalog.DeleteSource(ctx, tx, c.By.Tenant, id)
	})
}

// sourceDetail returns the part of a change's event about a source. Credentials
// in the arguments of a command or in an address are redacted; of the
// credentials themselves the event has only whether they exist and whether they
// are new.
func sourceDetail(src catalog.Source, given *connection.Credentials) map[string]any {
	credentials := "none"
	switch {
	case len(src.Secret) > 0 && given != nil:
		credentials = "set"
	case len(src.Secret) > 0:
		credentials = "kept"
	}
	return map[string]any{
		"kind": src.Kind, "config": redact.JSON(src.Config), "default_risk": request.NilIfZero(src.DefaultRisk), "enabled": src.Enabled, "credentials": credentials,
		"drift_guard": src.DriftGuard, "on_lost_login": src.OnLostLogin, "quarantine": src.Quarantine, "quarantined": src.Unaccepted,
	}
}

// currentSource returns the current source, or the zero value if there is
// none.
func currentSource(ctx context.Context, tx pgx.Tx, c *request.Call, id string) (catalog.Source, error) {
	snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
	if err != nil {
		return catalog.Source{}, err
	}
	old, _ := snap.Source(id)
	return old, nil
}

// encryptCredentials returns the encrypted credentials to store. Stored
// credentials are never sent to another address: a caller who changes the
// configuration of a source must give them again.
func encryptCredentials(c *request.Call, src, old catalog.Source, given *connection.Credentials) ([]byte, error) {
	if given == nil {
		if len(old.Secret) > 0 && (src.Kind != old.Kind || !catalog.SameAddress(src.Config, old.Config)) {
			return nil, request.Invalid("/credentials", envelope.RuleRequired, "config changes: give the credentials again, or {} for none")
		}
		return old.Secret, nil
	}
	if len(given.Header) == 0 && len(given.Env) == 0 && len(given.Values) == 0 && len(given.Accounts) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	return c.Vault.Encrypt(c.By.Tenant, src.ID, raw)
}

// RefreshSource handles POST /api/v1/sources/{id}/refresh. It requests that
// the workers list the tools of a source now. It does not change
// configuration; the listing records the changes.
func RefreshSource(c *request.Call) error {
	id := c.R.PathValue("id")
	asked, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (time.Time, error) {
		return catalog.AskRefresh(ctx, tx, c.By.Tenant, id)
	})
	if err != nil {
		return c.Suggest(request.NounSource, id, err)
	}
	return c.JSON(http.StatusAccepted, wire.Refresh{SourceID: id, AskedAt: asked.UTC()})
}
