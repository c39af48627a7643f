package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// The walk finds the tables, sequences, functions, schemas and columns of later
// migrations too: triage has the privileges listed here, and no others.
func TestTriageHasItsTablesAndPropose(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	const role = "countersign_triage"

	tables := query[string](h, postgres.Admin(), `
		SELECT c.relname || ' ' || string_agg(p.name, ' ' ORDER BY p.name)
		FROM pg_class c CROSS JOIN (VALUES ('DELETE'), ('INSERT'), ('REFERENCES'), ('SELECT'), ('TRIGGER'), ('TRUNCATE'), ('UPDATE')) p (name)
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
			AND has_table_privilege($1, c.oid, p.name)
		GROUP BY c.relname ORDER BY c.relname`, role)
	columns := query[string](h, postgres.Admin(), `
		SELECT c.relname || '.' || a.attname || ' ' || p.name
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		CROSS JOIN (VALUES ('INSERT'), ('SELECT'), ('UPDATE')) p (name)
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
			AND has_column_privilege($1, c.oid, a.attnum, p.name) AND NOT has_table_privilege($1, c.oid, p.name)
		ORDER BY 1`, role)
	sequences := query[string](h, postgres.Admin(), `
		SELECT c.relname::text FROM pg_class c
		WHERE c.relkind = 'S' AND (has_sequence_privilege($1, c.oid, 'USAGE') OR has_sequence_privilege($1, c.oid, 'SELECT') OR has_sequence_privilege($1, c.oid, 'UPDATE'))`, role)
	functions := query[string](h, postgres.Admin(), `
		SELECT p.oid::regprocedure::text FROM pg_proc p
		WHERE p.pronamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
			AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
			AND has_function_privilege($1, p.oid, 'EXECUTE') AND has_schema_privilege($1, p.pronamespace, 'USAGE')
		ORDER BY 1`, role)
	schemas := query[string](h, postgres.Admin(), `
		SELECT n.nspname || ' ' || p.name FROM pg_namespace n CROSS JOIN (VALUES ('CREATE'), ('USAGE')) p (name)
		WHERE n.nspname !~ '^pg_|^information_schema$' AND has_schema_privilege($1, n.oid, p.name) ORDER BY 1`, role)
	roles := query[string](h, postgres.Admin(), "SELECT r.rolname::text FROM pg_roles r WHERE r.rolname <> $1 AND pg_has_role($1::name, r.oid, 'MEMBER')", role)

	want := map[string][]string{
		"tables": {
			"goose_db_version SELECT", "triage_accounts SELECT", "triage_briefs INSERT SELECT", "triage_calendars SELECT", "triage_corrections SELECT", "triage_decisions DELETE INSERT SELECT UPDATE", "triage_findings INSERT SELECT", "triage_folders INSERT SELECT UPDATE", "triage_follow_ups SELECT",
			"triage_label_due DELETE INSERT SELECT", "triage_labeled SELECT", "triage_labels SELECT",
			"triage_locations DELETE INSERT SELECT UPDATE", "triage_messages DELETE INSERT SELECT UPDATE", "triage_proposals INSERT SELECT",
			"triage_refs INSERT SELECT", "triage_runs INSERT SELECT UPDATE", "triage_schedules INSERT SELECT UPDATE", "triage_senders INSERT SELECT UPDATE",
			"triage_set_aside DELETE INSERT SELECT UPDATE", "triage_tag_log INSERT SELECT", "triage_tags INSERT SELECT UPDATE", "triage_texts SELECT",
		},
		"columns": {
			"pauses.lifted_at SELECT", "pauses.scope SELECT", "pauses.subject SELECT", "pauses.tenant_id SELECT", "pauses.travelling SELECT", "triage_accounts.secret UPDATE", "triage_briefs.envelope UPDATE", "triage_briefs.proposal_id UPDATE",
			"triage_labeled.account_id INSERT", "triage_labeled.because INSERT", "triage_labeled.because UPDATE", "triage_labeled.label INSERT", "triage_labeled.labeled_at UPDATE",
			"triage_labeled.message_id INSERT", "triage_labeled.score INSERT", "triage_labeled.score UPDATE", "triage_labeled.tenant_id INSERT", "triage_labels.matched_at UPDATE",
			"triage_proposals.outcome_due UPDATE", "triage_proposals.proposal_id UPDATE", "triage_proposals.withdraw_at UPDATE", "triage_texts.account_id INSERT", "triage_texts.asked_by INSERT",
			"triage_texts.attempts UPDATE", "triage_texts.ended_at UPDATE", "triage_texts.external_id UPDATE", "triage_texts.kind INSERT", "triage_texts.message_id INSERT",
			"triage_texts.model UPDATE", "triage_texts.problem UPDATE", "triage_texts.prompt UPDATE", "triage_texts.tenant_id INSERT", "triage_texts.text UPDATE",
		}, "sequences": nil,
		"functions": {
			"countersign.proposal_status(uuid)", "countersign.propose(jsonb)", "countersign.propose_many(jsonb[])",
			"triage_args_allowed(text,jsonb,jsonb)", "triage_erase_tries(uuid)", "triage_pause(uuid,uuid)", "triage_tag_args_allowed(jsonb,jsonb)", "triage_tenant()",
			"triage_tools(jsonb)", "triage_tries(uuid)",
		},
		"schemas": {"countersign USAGE", "countersign_data USAGE", "public USAGE"}, "roles": nil,
	}
	got := map[string][]string{"tables": tables, "columns": columns, "sequences": sequences, "functions": functions, "schemas": schemas, "roles": roles}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what triage may do (-want +got):\n%s", diff)
	}
}

// triageLogin creates a login that is granted triage only and bound to a
// tenant, and connects as it.
func triageLogin(t *testing.T, address string, admin *pgx.Conn, tenant uuid.UUID) *pgx.Conn {
	t.Helper()
	name := "triage_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	for _, sql := range []string{
		"CREATE ROLE " + name + " LOGIN PASSWORD '" + name + "' IN ROLE countersign_triage",
		fmt.Sprintf("INSERT INTO tenants (tenant_id, name) VALUES ('%s', '%s') ON CONFLICT DO NOTHING", tenant, tenant),
		fmt.Sprintf("INSERT INTO db_logins (tenant_id, login_id, login, tools) VALUES ('%s', '%s', '%s', '{mail:*}')", tenant, uuid.Must(uuid.NewV7()), name),
		fmt.Sprintf("INSERT INTO triage_accounts (tenant_id, account_id, name, kind) VALUES ('%s', '%[1]s', 'a', 'maildir')", tenant),
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		clean := context.WithoutCancel(t.Context())
		if _, err := admin.Exec(clean, "DROP ROLE "+name); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, name)
	return dbtest.Connect(t, u.String())
}

const insertTriageProposal = `INSERT INTO countersign_data.triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope)
	VALUES ($1, $2, $1, $1, 'archive', $3, $4)`

func TestTriageLoginProposesTheRowsOfItsTable(t *testing.T) {
	t.Parallel()
	ctx, address := t.Context(), dbtest.URL(t)
	admin := dbtest.Connect(t, address)
	tenant, other := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	login, stranger := triageLogin(t, address, admin, tenant), triageLogin(t, address, admin, other)
	message := `INSERT INTO countersign_data.triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, received_at, size)
		VALUES ($1, $1, $1, sha256('x'), $1, false, now(), 1)`
	if _, err := login.Exec(ctx, message, tenant); err != nil {
		t.Fatal(err)
	}
	if _, err := login.Exec(ctx, message, other); code(err) != denied {
		t.Errorf("a message of another tenant: %v, want it denied", err)
	}
	id := "triage:" + strings.Repeat("0a", 32)
	fields := `[{"pointer":"/account","value":"a","origin":"config","ref":"/account"},{"pointer":"/message/key","value":"1","origin":"header"}]`
	body := func(account string) string {
		return fmt.Sprintf(`{"type":"mcp.exec","external_id":%q,"tool":{"source":"mail","name":"message.archive"},"args":{"account":%q,"message":{"key":"1"}}}`, id, account)
	}
	const propose = "SELECT countersign.propose($1)"

	if _, err := login.Exec(ctx, propose, body("a")); code(err) != denied {
		t.Errorf("without a row: %v, want it denied", err)
	}
	if _, err := login.Exec(ctx, insertTriageProposal, tenant, id, fields, body("a")); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]string{"other arguments": body("b"), "another id": strings.ReplaceAll(body("a"), "0a0a", "0b0b")} {
		if _, err := login.Exec(ctx, propose, other); code(err) != denied {
			t.Errorf("%s than the row's: %v, want it denied", name, err)
		}
	}
	if _, err := stranger.Exec(ctx, propose, body("a")); code(err) != denied {
		t.Errorf("another tenant's row: %v, want it denied", err)
	}
	var n int
	if err := stranger.QueryRow(ctx, "SELECT (SELECT count(1) FROM triage_proposals) + (SELECT count(1) FROM triage_messages)").Scan(&n); err != nil || n != 0 {
		t.Errorf("another tenant's login sees %d rows, %v, want none", n, err)
	}
	if _, err := login.Exec(ctx, "SET countersign.tenant_id = '"+other.String()+"'; SELECT 1 FROM triage_accounts", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if err := login.QueryRow(ctx, "SELECT count(1) FROM triage_accounts WHERE tenant_id = $1", other).Scan(&n); err != nil || n != 0 {
		t.Errorf("with the setting of another tenant it sees %d accounts, %v, want none", n, err)
	}
	if _, err := login.Exec(ctx, propose, body("a")); err != nil {
		t.Errorf("what the row says: %v, want it proposed", err)
	}
	if err := admin.QueryRow(ctx, "SELECT count(1) FROM proposals WHERE tenant_id = $1", tenant).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d proposals, %v, want 1", n, err)
	}
}

func TestValuesNeedAnAllowedOrigin(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	allowed := func(tool, args, fields string) bool {
		return query[bool](h, postgres.Admin(), "SELECT triage_args_allowed($1, $2, $3)", tool, args, fields)[0]
	}
	field := func(pointer, value, origin string) string {
		return fmt.Sprintf(`{"pointer":%q,"value":%q,"origin":%q}`, pointer, value, origin)
	}
	draft := func(to, text string) string {
		return `[` + field("/account", "a", "config") + `,` + field("/to/0", "x@example.org", to) + `,` + field("/text", "t", text) + `]`
	}
	const letter = `{"account":"a","to":["x@example.org"],"text":"t"}`

	for name, c := range map[string]struct {
		tool, args, fields string
		want               bool
	}{
		"a draft to who is in the header":      {"message.draft", letter, draft("header", "model_text"), true},
		"a draft to whom a model named":        {"message.draft", letter, draft("model_text", "model_text"), false},
		"a draft to an enumerated word":        {"message.draft", letter, draft("enum", "model_text"), false},
		"a value of no origin":                 {"message.draft", letter, draft("body", "model_text"), false},
		"a value that no field names":          {"message.draft", `{"account":"a","to":["x@example.org","y@example.org"],"text":"t"}`, draft("header", "model_text"), false},
		"another value than the field's":       {"message.draft", `{"account":"a","to":["y@example.org"],"text":"t"}`, draft("header", "model_text"), false},
		"a number":                             {"message.draft", `{"account":"a","to":[1],"text":"t"}`, draft("header", "model_text"), false},
		"an empty object":                      {"message.draft", `{}`, `[]`, false},
		"an empty list inside":                 {"message.draft", `{"account":"a","to":["x@example.org"],"text":"t","cc":[]}`, draft("header", "model_text"), false},
		"a field that is not among the values": {"message.archive", `{"account":"a"}`, `[` + field("/account", "a", "config") + `,` + field("/message/key", "1", "header") + `]`, false},
		"a field twice":                        {"message.archive", `{"account":"a"}`, `[` + field("/account", "a", "config") + `,` + field("/account", "a", "config") + `]`, false},
		"a label from the text":                {"message.label", `{"account":"a","labels":{"add":["x"]}}`, `[` + field("/account", "a", "config") + `,` + field("/labels/add/0", "x", "model_text") + `]`, false},
		"a label of the configuration":         {"message.label", `{"account":"a","labels":{"add":["x"]}}`, `[` + field("/account", "a", "config") + `,` + field("/labels/add/0", "x", "config") + `]`, true},
		"a folder with archive":                {"message.archive", `{"account":"a","folder":"x"}`, `[` + field("/account", "a", "config") + `,` + field("/folder", "x", "config") + `]`, false},
		"another tool":                         {"message.send", `{"account":"a"}`, `[` + field("/account", "a", "config") + `]`, false},
		"an answer to the sender":              {"message.away", `{"account":"a","to":"x@example.org","text":"t"}`, `[` + field("/account", "a", "config") + `,` + field("/to", "x@example.org", "header") + `,` + field("/text", "t", "config") + `]`, true},
		"an answer to somebody else":           {"message.away", `{"account":"a","to":"x@example.org"}`, `[` + field("/account", "a", "config") + `,` + field("/to", "x@example.org", "config") + `]`, false},
		"an answer of a model":                 {"message.away", `{"account":"a","text":"t"}`, `[` + field("/account", "a", "config") + `,` + field("/text", "t", "model_text") + `]`, false},
		"a list":                               {"message.archive", `["a"]`, `[` + field("/0", "a", "config") + `]`, false},
		"fields that are no list":              {"message.archive", `{"account":"a"}`, `{}`, false},
	} {
		if got := allowed(c.tool, c.args, c.fields); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
