package rest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// logged is the part of an execution that tests compare.
type logged struct {
	ID         string `json:"execution_id"`
	Status     string
	Tool       string
	Inputs     json.RawMessage
	Redacted   bool            `json:"inputs_redacted"`
	Proposed   json.RawMessage `json:"proposed_inputs"`
	EditedBy   string          `json:"edited_by"`
	Outputs    json.RawMessage
	Error      *struct{ Code string }
	DurationMS *int64 `json:"duration_ms"`
	User       *struct{ Name string }
	Session    string `json:"session_id"`
	Context    *struct{ IP, Via string }
	Policy     struct {
		Mode  string
		Trace []json.RawMessage
	}
	Decision   *struct{ Approval, By, Note string }
	Preview    *struct{ Result string }
	AttemptLog []struct{ Status string } `json:"attempt_log"`
	Snapshots  []struct{ Stage string }
	Related    []struct {
		ID       string `json:"execution_id"`
		Relation string
	}
}

func (c *client) executions(query string) (ids []string) {
	c.t.Helper()
	cursor := ""
	for {
		var list struct {
			Items []logged
			Next  *string `json:"next_cursor"`
		}
		c.send("GET", "/api/v1/executions?limit=2&"+query+cursor, nil).wants(c.t, http.StatusOK).into(c.t, &list)
		for _, e := range list.Items {
			ids = append(ids, e.ID)
		}
		if list.Next == nil {
			return ids
		}
		cursor = "&cursor=" + *list.Next
	}
}

func (c *client) execution(id string) (e logged) {
	c.t.Helper()
	c.send("GET", "/api/v1/executions/"+id, nil).wants(c.t, http.StatusOK).into(c.t, &e)
	return e
}

func TestExecutionsAreFilteredAndPaged(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	call := func(c *client, tool string) string {
		return c.invoke(tool, named(nil)).wants(t, http.StatusAccepted).call(t).ID
	}
	sent := call(f.agent, "mail:read")
	f.settle(envelope.StatusSent, "")
	failed := call(f.agent, "mail:read")
	f.settle(envelope.StatusFailed, outbox.Refused)
	waits := call(f.other, "mail:write")
	denied := f.agent.invoke("mail:danger", named(nil)).wants(t, http.StatusForbidden).callProblem(t).Execution.ID
	dry := f.agent.invoke("mail:write", object{"dry_run": true}).wants(t, http.StatusOK).call(t).ID
	queued := call(f.operator, "mail:read")
	newest := []string{queued, dry, denied, waits, failed, sent}

	for query, want := range map[string][]string{
		"":                                newest,
		"status=success":                  {sent},
		"status=error":                    {failed},
		"status=denied":                   {denied},
		"status=pending":                  {queued, waits},
		"status=dry_run":                  {dry},
		"status=expired":                  nil,
		"tool=*:write":                    {dry, waits},
		"source=mail&tool=*:danger":       {denied},
		"source=post":                     nil,
		"session_id=s-one":                {dry, denied, failed, sent},
		"session_id=s-two":                {waits},
		"code=http_400":                   {failed},
		"via=api":                         newest,
		"via=mcp":                         nil,
		"ip=127.0.0.1":                    newest,
		"ip=192.0.2.1":                    nil,
		"token_id=" + f.other.id.String(): {waits},
		"workflow_id=" + uuid.NewString(): nil,
		"employee_id=" + uuid.NewString(): nil,
		"automation_id=none":              nil,
		"since=2026-01-01T00:00:00Z":      newest,
		"until=2026-01-01T00:00:00Z":      nil,
	} {
		got := f.operator.executions(query)

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("executions of %q (-want +got):\n%s", query, diff)
		}
	}
	if got := f.agent.executions(""); !slices.Equal(got, []string{dry, denied, failed, sent}) {
		t.Errorf("an agent sees %v, want its own session's", got)
	}
	if got := f.agent.executions("session_id=s-two"); got != nil {
		t.Errorf("an agent sees %v of another session", got)
	}
	for _, query := range []string{"status=x", "token_id=x", "since=noon", "via=x", "ip=x'", "cursor=x", "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "limit=201"} {
		f.operator.send("GET", "/api/v1/executions?"+query, nil).wants(t, http.StatusBadRequest)
	}
}

func TestExecutionIsComplete(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	inputs := object{"to": "ana", "n": 3}
	dry := f.agent.invoke("mail:write", object{"inputs": inputs, "dry_run": true}).wants(t, http.StatusOK).call(t).ID
	id := f.agent.invoke("mail:write", object{"inputs": inputs, "external_id": "letter"}).wants(t, http.StatusAccepted).call(t).ID
	f.operator.send("POST", path(id, "/approve"), object{"note": "fine"}).wants(t, http.StatusOK)
	f.settle(envelope.StatusSent, "")

	got := f.operator.execution(id)

	if got.Status != "success" || string(got.Inputs) != `{"n":3,"to":"ana"}` && string(got.Inputs) != `{"n": 3, "to": "ana"}` || string(got.Outputs) != `{"ok":true}` ||
		got.DurationMS == nil || got.User == nil || got.User.Name != "agent" || got.Session != "s-one" || got.Context == nil || got.Context.IP != "127.0.0.1" ||
		got.Context.Via != "api" || len(got.Policy.Trace) == 0 || got.Decision == nil || got.Decision.Approval != "granted" || got.Decision.Note != "fine" || len(got.AttemptLog) != 1 {
		t.Errorf("execution = %+v", got)
	}
	related := make(map[string]string)
	for _, r := range got.Related {
		related[r.ID] = r.Relation
	}
	if diff := cmp.Diff(map[string]string{dry: "dry_run"}, related); diff != "" {
		t.Errorf("related (-want +got):\n%s", diff)
	}
	if dryRun := f.agent.execution(dry); dryRun.Status != "dry_run" || dryRun.Preview == nil || dryRun.Preview.Result != "ask" {
		t.Errorf("dry run = %+v", dryRun)
	}
	f.other.send("GET", "/api/v1/executions/"+id, nil).wants(t, http.StatusNotFound)
	f.operator.send("GET", "/api/v1/executions/"+uuid.NewString(), nil).wants(t, http.StatusNotFound)
}

func TestEditedExecutionKeepsTheProposedArguments(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	id := f.agent.invoke("mail:write", named(object{"inputs": object{"n": 1}})).wants(t, http.StatusAccepted).call(t).ID
	f.operator.send("POST", path(id, "/approve"), object{"args": object{"n": 2}}).wants(t, http.StatusOK)

	got := f.operator.execution(id)

	var inputs, proposed struct{ N int }
	if json.Unmarshal(got.Inputs, &inputs) != nil || json.Unmarshal(got.Proposed, &proposed) != nil || inputs.N != 2 || proposed.N != 1 || got.EditedBy != f.operator.named("operator") {
		t.Errorf("execution = %+v, want 1 proposed and 2 done", got)
	}
}

func TestOthersSeeInputsWithoutCredentials(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	id := f.agent.invoke("mail:read", named(object{"inputs": object{"password": "hunter2", "n": 1}})).wants(t, http.StatusAccepted).call(t).ID

	own, others := f.agent.execution(id), f.admin.execution(id)

	var in, out struct{ Password string }
	if json.Unmarshal(own.Inputs, &in) != nil || json.Unmarshal(others.Inputs, &out) != nil || in.Password != "hunter2" || own.Redacted ||
		out.Password != "[REDACTED]" || !others.Redacted {
		t.Errorf("its proposer sees %s, others %s", own.Inputs, others.Inputs)
	}
}

func TestSnapshotRulesAreHeldToTheCatalog(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	put := func(name string, snapshot any) answer {
		return f.operator.send("PUT", "/api/v1/tools/mail:"+name+"/snapshot-rule", snapshot)
	}
	for name, test := range map[string]struct {
		rule    object
		pointer string
	}{
		"no such tool":     {object{"read": "mail:nothing"}, "/read"},
		"no read":          {object{"read": "mail:write"}, "/read"},
		"no place":         {object{"read": "mail:read", "args": object{"a": "$steps.0/a"}}, "/args/a"},
		"an unknown field": {object{"read": "mail:read", "happened": "/x"}, "/happened"},
	} {
		p := put("write", test.rule).wants(t, http.StatusBadRequest).problem(t)
		if len(p.Errors) == 0 || p.Errors[0].Pointer != test.pointer {
			t.Errorf("%s: %+v, want %s", name, p.Errors, test.pointer)
		}
	}
	put("nothing", object{"read": "mail:read"}).wants(t, http.StatusNotFound)
	put("write", object{"read": "mail:read", "args": object{"to": "$inputs/to"}, "required": true}).wants(t, http.StatusOK)

	var list struct {
		Items []struct {
			Tool, Read string
			Required   bool
		}
	}
	f.operator.send("GET", "/api/v1/snapshot-rules", nil).wants(t, http.StatusOK).into(t, &list)
	if len(list.Items) != 1 || list.Items[0].Tool != "mail:write" || list.Items[0].Read != "mail:read" || !list.Items[0].Required {
		t.Errorf("rules = %+v", list.Items)
	}
	f.admin.send("DELETE", "/api/v1/tools/mail:write/snapshot-rule", nil).wants(t, http.StatusNoContent)
	f.admin.send("DELETE", "/api/v1/tools/mail:write/snapshot-rule", nil).wants(t, http.StatusNotFound)
}

func TestToolIsFoundByEveryName(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("acme")
	f.inTx(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.PutListing(ctx, tx, f.id, "mail", []source.Tool{mailTools[0], {Name: "box/list all", InputSchema: json.RawMessage(`{"type":"object"}`)}})
	})
	var list struct {
		Items []struct {
			Tool     string
			FullName string `json:"full_name"`
		}
	}
	f.operator.send("GET", "/api/v1/tools", nil).wants(t, http.StatusOK).into(t, &list)
	names := map[string]string{"mail:read": "mail:read", "read": "mail:read", "mail:box/list all": "mail:box/list all", "box/list all": "mail:box/list all"}
	for _, it := range list.Items {
		names[it.FullName] = it.Tool
	}

	for name, key := range names {
		got := f.agent.invoke(name, object{"dry_run": true}).wants(t, http.StatusOK).call(t)

		if got.Tool != key {
			t.Errorf("%s is %s, want %s", name, got.Tool, key)
		}
	}
}
