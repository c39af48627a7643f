package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// TestCohort decides about the actions of a cohort at once. An action that changed, was
// decided or withdrawn, or expired between the list and the decision is reported
// and left.
func TestCohort(t *testing.T) {
	t.Parallel()
	d := open(t)
	conn := dbtest.Connect(t, d.database)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(d.dir, "work.yaml")
	writeFile(t, file, "kind: maildir\nconnection:\n  path: /srv/mail\n")
	d.want(d.admin("triage", "accounts", "set", "work", "-f", file), command.ExitOK)
	messages := map[string]uuid.UUID{"newsletters": uuid.Must(uuid.NewV7()), "social": uuid.Must(uuid.NewV7())}
	for cohort, id := range messages {
		exec(`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, header_id, thread_id, outgoing, sender, subject, body, received_at, size)
			SELECT tenant_id, $1, account_id, sha256(convert_to($1::uuid::text, 'UTF8')), $1::uuid::text, $1, false, 'news@example.com', 'News', '', now(), 10 FROM triage_accounts`, id)
		exec(`INSERT INTO triage_decisions (tenant_id, message_id, account_id, run_id, act, category, priority, bucket, cohort, level, confidence, question, decision, signals, prediction, model)
			SELECT tenant_id, message_id, account_id, message_id, 'fyi', 'primary', 'fyi', 'informational', $2, 3, 0.9, false, '{}', '{}', '{}', 'd' FROM triage_messages WHERE message_id = $1`, id, cohort)
	}
	made := 0
	propose := func(cohort string) string {
		t.Helper()
		made++
		external := fmt.Sprintf("triage:%064d", made)
		a := decode[wire.Action](t, d.want(d.agent("submit", "--json", "--tool", "notes:notes.create", "--external-id", external, "--args", `{"title":"label","body":"x"}`), command.ExitOK).out)
		id := a.Envelope.ActionID.String()
		exec(`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope, proposal_id)
			SELECT tenant_id, $2, account_id, message_id, 'label', '[{"pointer":"/account","value":"ann","origin":"config","ref":""}]',
				jsonb_build_object('type', 'mcp.exec', 'external_id', $2::text, 'tool', '{"source":"mail","name":"message.label"}'::jsonb, 'args', '{"account":"ann"}'::jsonb), $3::uuid
			FROM triage_messages WHERE message_id = $1`, messages[cohort], external, id)
		return id
	}
	same, edited, withdrawn, denied, expired, other := propose("newsletters"), propose("newsletters"), propose("newsletters"), propose("newsletters"), propose("newsletters"), propose("social")

	// The changes come after the list, and before the decision reaches the server.
	at, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(at)
	between := func() {}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			between()
			between = func() {}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	through := *d
	through.url = server.URL
	between = func() {
		exec("UPDATE actions SET args = '{\"title\": \"changed\", \"body\": \"x\"}' WHERE action_id = $1::uuid", edited)
		d.want(d.agent("undo", withdrawn), command.ExitOK)
		d.want(d.operator("deny", denied), command.ExitOK)
		exec("UPDATE actions SET approval_expires_at = now() - interval '1 second' WHERE action_id = $1::uuid", expired)
	}

	d.want(d.operator("approve", "--cohort", "newsletters"), command.ExitUsage, "--cohort needs --yes")
	d.want(d.operator("approve", same, "--cohort", "newsletters", "--yes"), command.ExitUsage, "either ids or --cohort")
	d.want(d.operator("approve", "--cohort", "newsletters", "--yes", "--wait"), command.ExitUsage, "cannot be combined")
	d.want(d.operator("approve", "--cohort", "vip", "--yes"), command.ExitOK, "Nothing waits for a person")
	d.want(d.operator("approve"), command.ExitUsage, "or --cohort")

	got := d.want(through.operator("approve", "--cohort", "newsletters", "--yes", "--note", "as always"), command.ExitFailed)

	lines := make(map[string]string)
	for line := range strings.Lines(got.out) {
		id, rest, _ := strings.Cut(line, " ")
		lines[id] = strings.Join(strings.Fields(rest), " ")
	}
	for id, want := range map[string]string{
		same: "approved -", edited: "refused action " + edited + " has changed since it was read", withdrawn: "refused action " + withdrawn + " does not wait for a decision",
		denied: "refused action " + denied + " does not wait for a decision: it was denied by demo ope", expired: "refused ",
	} {
		if !strings.HasPrefix(lines[id], want) {
			t.Errorf("%s: %q, want %q", id, lines[id], want)
		}
	}
	if _, listed := lines[other]; listed || len(lines) != 6 {
		t.Errorf("decided about %d rows with the head, want 6: %s", len(lines), got.out)
	}
	for id, want := range map[string]string{edited: "pending", withdrawn: "undone", denied: "denied", other: "pending"} {
		if a := decode[wire.Action](t, d.operator("get", "--json", id).out); string(a.Phase) != want {
			t.Errorf("%s is %s, want %s", id, a.Phase, want)
		}
	}
	if a := decode[wire.Action](t, d.operator("get", "--json", same).out); a.Decision.Note != "as always" || a.Decision.By == "" {
		t.Errorf("the approved action = %+v", a.Decision)
	}

	d.want(d.operator("deny", "--cohort", "social", "--yes", "--json", "--note", "too much"), command.ExitOK, `"result":"denied"`, other)
	d.want(d.operator("deny", "--cohort", "social", "--etag", strings.Repeat("A", 24)), command.ExitUsage, "cannot be combined")
}

// TestRespond prints the inbox as LangGraph's Agent Inbox, and decides by its
// responses.
func TestRespond(t *testing.T) {
	t.Parallel()
	d := open(t)
	list := func() []wire.Interrupt {
		t.Helper()
		return decode[[]wire.Interrupt](t, d.want(d.operator("inbox", "--format", "agent-inbox"), command.ExitOK).out)
	}
	if all := list(); all == nil || len(all) != 0 {
		t.Errorf("an empty inbox = %v, want an empty list", all)
	}
	id := d.propose("One")
	it := list()[0]
	if it.ActionID.String() != id || it.Request.Action != "notes:notes.create" || !it.Config.Accept {
		t.Errorf("interrupt = %+v", it)
	}
	file := filepath.Join(d.dir, "response.json")
	writeFile(t, file, `[{"type":"edit","args":{"action":"notes:notes.create","args":{"title":"Two","body":"y"}}}]`)

	d.want(d.operator("respond", id, "--etag", it.ETag), command.ExitUsage, "--response is required")
	d.want(d.operator("respond", id, "--response", "@"+file), command.ExitFailed, "If-Match")
	d.want(d.operator("respond", id, "--response", "[]", "--etag", it.ETag), command.ExitUsage, "holds 0 responses")
	d.want(d.operator("respond", id, "--etag", it.ETag, "--response", `{"type":"edit","args":{"action":"notes:notes.create","args":{"title":5,"body":"y"}}}`), command.ExitUsage, "/args/args/title")
	d.want(d.operator("respond", id, "--etag", it.ETag, "--response", "@"+file), command.ExitOK, id)
	d.want(d.operator("get", id), command.ExitOK, `"title":"Two"`, "edited by demo operator")
	two := d.propose("Three")
	d.want(d.operator("respond", two, "--etag", list()[0].ETag, "--response", `{"type":"response","args":"ask in May"}`), command.ExitOK, two)
	d.want(d.operator("get", two), command.ExitAction, "ask in May")
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCohortInSets approves more actions than one request takes: in sets, each with
// the versions that were listed.
func TestCohortInSets(t *testing.T) {
	t.Parallel()
	const waiting = 1203
	items := make([]wire.InboxItem, waiting)
	for i := range items {
		items[i] = wire.InboxItem{Kind: wire.InboxQuestion, ActionID: envelope.ActionID(uuid.Must(uuid.NewV7())), Tool: "mail:message.archive", ETag: fmt.Sprintf("%024d", i)}
	}
	var sets []int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			if got := r.URL.Query(); got.Get("cohort") != "social" || got.Get("kind") != "approval,question,review" {
				t.Errorf("the list is of %v", got)
			}
			from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
			page := wire.Page[wire.InboxItem]{Items: items[from:min(from+200, waiting)]}
			if from+200 < waiting {
				page.NextCursor = new(strconv.Itoa(from + 200))
			}
			_ = json.NewEncoder(w).Encode(page)
			return
		}
		var in wire.BulkDecision
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		var out wire.Page[wire.Decided]
		for _, id := range in.IDs {
			if at := slices.IndexFunc(items, func(it wire.InboxItem) bool { return it.ActionID == id }); at < 0 || in.ETags[id] != items[at].ETag {
				t.Errorf("%s is approved with the version %q", id, in.ETags[id])
			}
			out.Items = append(out.Items, wire.Decided{ActionID: id, Result: "approved"})
		}
		sets = append(sets, len(in.IDs))
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(server.Close)
	d := &fixture{t: t, url: server.URL}

	got := d.want(d.run(t.Context(), "cs_operator_token", "", "approve", "--cohort", "social", "--yes", "--json"), command.ExitOK)

	if !slices.Equal(sets, []int{500, 500, 203}) || strings.Count(got.out, `"approved"`) != waiting {
		t.Errorf("sets of %v, and %d lines", sets, strings.Count(got.out, `"approved"`))
	}
}
