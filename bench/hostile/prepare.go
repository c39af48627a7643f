package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/builtin"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// tenants has the tokens of both tenants.
type tenants struct{ neighbour, attacker string }

// The attacker's source, and its tool whose schema is set in the database, as
// if another version had listed it.
const (
	evil   = "evil"
	bomb   = "bomb"
	levels = 6
)

// prepare migrates the database and makes both tenants with their tools.
func prepare(ctx context.Context, url string) (t tenants, err error) {
	if _, err := postgres.Migrate(ctx, url); err != nil {
		return t, err
	}
	pool, err := postgres.Open(ctx, postgres.Config{URL: url})
	if err != nil {
		return t, err
	}
	defer pool.Close()
	err = postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) error {
		if t.neighbour, err = newTenant(ctx, tx, "neighbour", nil); err != nil {
			return err
		}
		if t.attacker, err = newTenant(ctx, tx, "attacker", hostileTools()); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE tools SET input_schema = $1 WHERE source_id = $2 AND name = $3", nested(levels, 8, "anyOf"), evil, bomb)
		return err
	})
	return t, err
}

// newTenant makes a tenant that allows everything, and returns a token of an
// owner.
func newTenant(ctx context.Context, tx pgx.Tx, name string, tools []source.Tool) (token string, err error) {
	id, err := identity.NewTenant(ctx, tx, name)
	if err != nil {
		return "", err
	}
	if _, err := tx.Exec(ctx, "UPDATE tenants SET session_pending_max = 0, session_minute_max = 0 WHERE tenant_id = $1", id.String()); err != nil {
		return "", err
	}
	all, err := builtin.New().List(ctx)
	if err != nil {
		return "", err
	}
	sources := []catalog.Source{{ID: "countersign", Kind: catalog.KindBuiltin, Enabled: true}}
	if tools != nil {
		sources = append(sources, catalog.Source{ID: evil, Kind: catalog.KindMCP, Config: json.RawMessage(`{"transport":"http","url":"http://127.0.0.1:9/mcp"}`), Enabled: true})
	}
	for _, src := range sources {
		if err := catalog.PutSource(ctx, tx, id, src); err != nil {
			return "", err
		}
		listed := all
		if src.ID == evil {
			listed = tools
		}
		if err := catalog.PutListing(ctx, tx, id, src.ID, listed); err != nil {
			return "", err
		}
	}
	if err := settings.PutMode(ctx, tx, id, "", "*", envelope.ModeAllow, "bench"); err != nil {
		return "", err
	}
	made, err := identity.Issue(ctx, tx, id, identity.Grant{Name: name, Role: identity.RoleOwner}, time.Now())
	return made.Token.Text(), err
}

// hostileTools are tools whose schemas are as costly as a listing allows.
func hostileTools() []source.Tool {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf(`"p%d":{"type":"string","pattern":"^[a-z]{%d}$"}`, i, i%50)
	}
	schemas := []string{
		nested(2, 8, "anyOf"), nested(2, 8, "allOf"), nested(2, 8, "oneOf"),
		`{"patternProperties":{"a":{"$ref":"#"},"^a":{"$ref":"#"},"a$":{"$ref":"#"}}}`,
		`{"not":{"not":{"$ref":"#/$defs/x"}},"$defs":{"x":{"patternProperties":{"a":{"$ref":"#/$defs/x"},"^a":{"$ref":"#/$defs/x"}}}}}`,
		`{"properties":{"all":{"items":{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"pattern":"(a|b|c|d|e)*(x[a-z]{40}){20}"},`, 50), ",") + `]}}}}`,
		`{"properties":{"all":{"items":{"enum":[` + strings.Repeat(`1.5,`, 5000) + `1]}}}}`,
		`{"properties":{"all":{"uniqueItems":true,"items":{"required":["a","b","c"],"additionalProperties":false}}}}`,
		`{"unevaluatedProperties":false,"allOf":[{"properties":{"a":true}},{"properties":{"b":{"$ref":"#"}}}]}`,
		`{"properties":{` + strings.Join(names, ",") + `}}`,
		`{"properties":{"all":{"items":{"format":"regex"}}}}`,
		`{"type":"object","properties":{"n":{"multipleOf":1e-300,"maximum":1e300}}}`,
	}
	tools := []source.Tool{{Name: bomb, InputSchema: json.RawMessage(`{"type":"object"}`)}}
	for i, text := range schemas {
		tools = append(tools, source.Tool{Name: fmt.Sprintf("t%d", i), InputSchema: json.RawMessage(text)})
	}
	return tools
}

// nested returns a schema whose references multiply: each of its levels refers
// to the next one in several branches.
func nested(levels, branches int, combinator string) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/l0"}},"$defs":{`)
	for i := range levels {
		ref := fmt.Sprintf(`{"$ref":"#/$defs/l%d"},`, i+1)
		fmt.Fprintf(&b, `"l%d":{%q:[%s]},`, i, combinator, strings.TrimSuffix(strings.Repeat(ref, branches), ","))
	}
	fmt.Fprintf(&b, `"l%d":{"minProperties":1,"properties":{"a":{"$ref":"#/$defs/l0"}}}}}`, levels)
	return b.String()
}
