package rest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// checkpoint makes checkpoints up to the newest event.
func (h *fixture) checkpoint() {
	h.t.Helper()
	for done := false; !done; { // the transactions of other tests end by themselves
		if err := h.db.QueryRow(h.t.Context(), "SELECT coalesce(max(txid::text::bigint) < pg_snapshot_xmin(pg_current_snapshot())::text::bigint, true) FROM events").Scan(&done); err != nil {
			h.t.Fatal(err)
		}
	}
	if done, err := audit.CheckpointAll(h.t.Context(), h.db, func() bool { return true }); !done || err != nil {
		h.t.Fatalf("CheckpointAll = %t, %v", done, err)
	}
}

// exported is a line of an export.
type exported struct {
	Position   string
	Checkpoint *int64 `json:"checkpoint_no"`
	Leaf       string
	Kind       string
	Actor      string
	Items      []audit.Item
	audit.Closing
}

func lines(t *testing.T, a answer) []exported {
	t.Helper()
	var all []exported
	for scan := bufio.NewScanner(bytes.NewReader(a.body)); scan.Scan(); {
		var line exported
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			t.Fatalf("%v in %s", err, scan.Text())
		}
		all = append(all, line)
	}
	return all
}

func TestAuditVerifiesOverTheAPI(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, other := h.tenant("verified"), h.tenant("other")
	for range 3 {
		f.agent.propose("read")
	}
	other.agent.propose("read")
	h.checkpoint()

	var report audit.Report
	f.operator.send("GET", "/api/v1/audit/verify", nil).wants(t, 200).into(t, &report)

	if !report.Intact() || report.Covered != 3 || report.Head == nil {
		t.Fatalf("report = %+v", report)
	}
	head := report.Head.Hash.String()
	if _, err := h.db.Exec(t.Context(), "UPDATE events SET actor = 'mallory' WHERE tenant_id = $1", f.id.String()); err != nil {
		t.Fatal(err)
	}
	f.operator.send("GET", "/api/v1/audit/verify?after_checkpoint=1&head="+head, nil).wants(t, 200).into(t, &report)
	if !report.Intact() || report.Checkpoints != 0 {
		t.Errorf("report behind the last checkpoint = %+v", report)
	}
	f.operator.send("GET", "/api/v1/audit/verify?head="+strings.Repeat("0", 63)+"1", nil).wants(t, 200).into(t, &report)
	var kinds []audit.FindingKind
	for _, found := range report.Findings {
		kinds = append(kinds, found.Kind)
	}
	if diff := cmp.Diff([]audit.FindingKind{audit.Changed, audit.Changed, audit.Changed, audit.ChainBroken}, kinds); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	other.operator.send("GET", "/api/v1/audit/verify", nil).wants(t, 200).into(t, &report)
	if !report.Intact() || report.Covered != 1 {
		t.Errorf("another tenant's report = %+v", report)
	}
	f.operator.send("GET", "/api/v1/audit/verify?after_checkpoint=99", nil).wants(t, 404)
	for _, query := range []string{"after_checkpoint=0", "after_checkpoint=x", "head=abc", "head=" + strings.Repeat("X", 64), "head=" + strings.Repeat("0", 64), "tenant=other"} {
		f.operator.send("GET", "/api/v1/audit/verify?"+query, nil).wants(t, 400)
	}
}

func TestANotedHeadIsRecorded(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, other := h.tenant("noted"), h.tenant("other")
	f.agent.propose("read")
	other.agent.propose("read")
	h.checkpoint()
	var report audit.Report
	f.operator.send("GET", "/api/v1/audit/verify", nil).wants(t, 200).into(t, &report)
	head := object{"hash": report.Head.Hash.String()}

	first := f.operator.send("PUT", "/api/v1/audit/heads/1", head).wants(t, 200).body
	again := f.admin.send("PUT", "/api/v1/audit/heads/1", head).wants(t, 200).body

	if !bytes.Equal(first, again) {
		t.Errorf("noted once more: %s, and before: %s", again, first)
	}
	f.operator.send("PUT", "/api/v1/audit/heads/2", head).wants(t, 404)
	f.operator.send("PUT", "/api/v1/audit/heads/1", object{"hash": strings.Repeat("0", 64)}).wants(t, 404)
	f.operator.send("PUT", "/api/v1/audit/heads/1", object{"hash": "abc"}).wants(t, 400)
	f.operator.send("PUT", "/api/v1/audit/heads/one", head).wants(t, 400)
	f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer}).send("PUT", "/api/v1/audit/heads/1", head).wants(t, 403)
	other.operator.send("PUT", "/api/v1/audit/heads/1", head).wants(t, 404)
	var noted []string
	rows, err := h.db.Query(t.Context(), "SELECT DISTINCT tenant_id::text FROM checkpoints WHERE noted_at IS NOT NULL")
	if err == nil {
		noted, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if diff := cmp.Diff([]string{f.id.String()}, noted); err != nil || diff != "" {
		t.Errorf("tenants with a noted head (-want +got):\n%s%v", diff, err)
	}
	f.operator.send("GET", "/api/v1/audit/verify?head="+report.Head.Hash.String(), nil).wants(t, 200).into(t, &report)
	if !report.Intact() || report.KnownHead == nil || report.KnownHead.Checkpoint != 1 {
		t.Errorf("the chain of a noted head = %+v", report)
	}
}

func TestAuditIsExported(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f, other := h.tenant("exported"), h.tenant("other")
	f.agent.propose("read")
	other.agent.propose("read")
	h.checkpoint()

	all := lines(t, f.operator.send("GET", "/api/v1/audit/events", nil).wants(t, 200))

	if len(all) != 2 || all[0].Kind != "proposed" || *all[0].Checkpoint != 1 || len(all[0].Leaf) != 64 {
		t.Fatalf("export = %+v", all)
	}
	if end := all[1]; !end.End || end.Events != 1 || end.Tenant != f.id || end.Next != "" || end.Head == nil || end.Head.Checkpoint != 1 {
		t.Errorf("closing line = %+v", end)
	}
	for query, want := range map[string]int{
		"?since=2000-01-01T00:00:00Z&until=2100-01-01T00:00:00Z": 1, "?until=2000-01-01T00:00:00Z": 0,
		"?since=2100-01-01T00:00:00%2B01:00": 0, "?cursor=" + all[0].Position: 0,
	} {
		if got := lines(t, f.operator.send("GET", "/api/v1/audit/events"+query, nil).wants(t, 200)); len(got) != want+1 {
			t.Errorf("export%s has %d events, want %d", query, len(got)-1, want)
		}
	}
	for query, pointer := range map[string]string{
		"?since=yesterday": "/query/since", "?until=2026-13-01T00:00:00Z": "/query/until", "?cursor=x": "/query/cursor",
		"?cursor=99999999999999999999-1": "/query/cursor", "?since=2026-01-02T00:00:00Z&until=2026-01-02T00:00:00Z": "/query/until",
	} {
		p := f.operator.send("GET", "/api/v1/audit/events"+query, nil).wants(t, 400).problem(t)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != pointer {
			t.Errorf("export%s: errors %+v, want one at %s", query, p.Errors, pointer)
		}
	}
}

func TestALongExportGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f := h.tenant("long")
	const most = 50_000
	if _, err := h.db.Exec(t.Context(), "INSERT INTO events (tenant_id, kind, actor, items) SELECT $1, 'settled', n::text, '[]' FROM generate_series(1, $2::integer) n", f.id.String(), most+7); err != nil {
		t.Fatal(err)
	}
	if _, err := h.db.Exec(t.Context(), "ANALYZE events"); err != nil { // else each page sorts all events
		t.Fatal(err)
	}
	h.checkpoint()

	first := lines(t, f.operator.send("GET", "/api/v1/audit/events", nil).wants(t, 200))
	end := first[len(first)-1]
	rest := lines(t, f.operator.send("GET", "/api/v1/audit/events?cursor="+end.Next, nil).wants(t, 200))

	if len(first) != most+1 || len(rest) != 8 || rest[0].Actor != "50001" || rest[7].Next != "" {
		t.Errorf("%d lines and then %d, which begin with %q", len(first), len(rest), rest[0].Actor)
	}
}

// The log has the new value of every setting, and no secret.
func TestConfigurationEventsHaveTheNewValue(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	f := h.tenant("configured")
	admin := f.admin
	admin.send("PUT", "/api/v1/sources/notes", object{
		"kind": "mcp", "config": object{"transport": "stdio", "command": []string{"notes", "--token=" + marker}},
		"credentials": object{"env": object{"NOTES_KEY": marker}}, "default_risk": "write",
	}).wants(t, 200)
	admin.send("PUT", "/api/v1/sources/notes", object{"kind": "mcp", "config": object{"transport": "stdio", "command": []string{"notes", "--token=" + marker}}, "enabled": false}).wants(t, 200)
	admin.send("PUT", "/api/v1/tools/mail:write/overrides", object{"effect": "keyed", "max_attempts": 2}).wants(t, 200)
	digest := f.digest("read")
	admin.send("POST", "/api/v1/tools/mail:read/accept", object{"digest": digest}).wants(t, 200)
	admin.send("PUT", "/api/v1/policy/modes/mail:*?automation_id=a", object{"mode": "deny"}).wants(t, 200)
	admin.send("DELETE", "/api/v1/policy/modes/mail:*?automation_id=a", nil).wants(t, 204)
	var token struct {
		ID    string `json:"token_id"`
		Token string
	}
	admin.send("POST", "/api/v1/tokens", object{"name": "mail agent", "role": "agent", "session_id": "inbox"}).wants(t, 201).into(t, &token)
	admin.send("PUT", "/api/v1/retention/actions", object{"period": "30d", "action": "delete", "note": "as agreed with legal"}).wants(t, 200)
	h.checkpoint()

	a := f.operator.send("GET", "/api/v1/audit/events", nil).wants(t, 200)
	var got []audit.Item
	for _, line := range lines(t, a) {
		got = append(got, line.Items...)
	}

	config := map[string]any{"transport": "stdio", "command": []any{"notes", "--token=[REDACTED]"}}
	want := []audit.Item{
		{Subject: "source notes stored", Detail: object{"kind": "mcp", "config": config, "default_risk": "write", "enabled": true, "credentials": "set", "drift_guard": "full", "on_lost_login": "wait", "quarantine": true, "quarantined": false}},
		{Subject: "source notes stored", Detail: object{"kind": "mcp", "config": config, "default_risk": nil, "enabled": false, "credentials": "kept", "drift_guard": "full", "on_lost_login": "wait", "quarantine": true, "quarantined": false}},
		{Subject: "tool mail:write overridden", Detail: object{"risk": nil, "effect": "keyed", "max_attempts": 2.0}},
		{Subject: "tool mail:read accepted", Detail: object{"accepted_digest": digest}},
		{Subject: "policy mail:* of automation a is deny", Detail: object{"automation_id": "a", "tool": "mail:*", "mode": "deny"}},
		{Subject: "policy mail:* of automation a removed", Detail: object{"automation_id": "a", "tool": "mail:*", "mode": nil}},
		{Subject: "token " + token.ID + " issued for the role agent", Detail: object{
			"token_id": token.ID, "name": "mail agent", "role": "agent", "session_id": "inbox", "expires_at": nil,
		}},
		{Subject: "retention of actions is delete after 30 days", Note: "as agreed with legal", Detail: object{
			"kind": "actions", "days": 30.0, "action": "delete", "was": object{"days": 90.0, "action": "report"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if bytes.Contains(a.body, []byte(marker)) || bytes.Contains(a.body, []byte(token.Token)) {
		t.Errorf("a secret is in the log: %s", a.body)
	}
}

func TestRetentionIsSet(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("retention")
	type held struct {
		Kind, Action, Period string
	}
	list := func() []held {
		var page struct{ Items []held }
		f.operator.send("GET", "/api/v1/retention", nil).wants(t, 200).into(t, &page)
		return page.Items
	}

	f.admin.send("PUT", "/api/v1/retention/events", object{"period": "9999d", "action": "delete"}).wants(t, 200)

	want := []held{{"actions", "report", "90d"}, {"events", "delete", "9999d"}}
	for name, test := range map[string]struct {
		kind     string
		body     object
		pointers []string
	}{
		"no days":        {"actions", object{"period": "0s", "action": "delete"}, []string{"/period"}},
		"too many days":  {"actions", object{"period": "9999d24h", "action": "delete"}, []string{"/period"}},
		"half a day":     {"actions", object{"period": "36h", "action": "delete"}, []string{"/period"}},
		"no text":        {"actions", object{"period": 1, "action": "delete"}, []string{"/period"}},
		"unknown kind":   {"mail", object{"period": "1d", "action": "delete"}, []string{"/path/kind"}},
		"unknown action": {"events", object{"period": "1d", "action": "burn"}, []string{"/action"}},
		"a word more":    {"events", object{"period": "1d", "action": "delete", "tenant": uuid.NewString()}, []string{"/tenant"}},
		"nothing":        {"events", object{}, []string{"/period", "/action"}},
	} {
		var got []string
		for _, e := range f.admin.send("PUT", "/api/v1/retention/"+test.kind, test.body).wants(t, 400).problem(t).Errors {
			if len(got) == 0 || got[len(got)-1] != e.Pointer {
				got = append(got, e.Pointer)
			}
		}
		if diff := cmp.Diff(test.pointers, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Errorf("retention (-want +got):\n%s", diff)
	}
	stranger := f.holder(identity.Grant{Name: "o", Role: identity.RoleOperator})
	stranger.send("PUT", "/api/v1/retention/actions", object{"period": "1d", "action": "delete"}).wants(t, 403)
}
