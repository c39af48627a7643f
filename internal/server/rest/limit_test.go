package rest_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	restlimits "github.com/countersign-dev/countersign/internal/server/rest/limits"
)

// limited makes the limits that requests take away.
func (f *tenantFixture) limited(bucket, employee string) {
	f.t.Helper()
	f.admin.send("PUT", "/api/v1/buckets/"+bucket, object{}).wants(f.t, 200)
	f.admin.send("PUT", "/api/v1/employees/"+employee, object{"trust": "low"}).wants(f.t, 200)
	f.admin.send("PUT", nightPath("bucket", bucket), night()).wants(f.t, 200)
	f.operator.send("POST", "/api/v1/pauses", object{"scope": "bucket", "subject": bucket, "reason": "a test"}).wants(f.t, 201)
	ctx := f.t.Context()
	if err := postgres.InTx(ctx, f.db, postgres.Worker(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO breakers (tenant_id, source_id, state, cause, open_until, worker)
			VALUES ($1, 'mail', 'open', 'http_503', now(), 'w') ON CONFLICT DO NOTHING`, f.id.String())
		return err
	}); err != nil {
		f.t.Fatal(err)
	}
}

// night is the body of quiet hours of one minute, and nightPath the path of a
// scope and subject.
func night() object {
	return object{"timezone": "UTC", "windows": []object{{"from": "03:00", "until": "03:01"}}}
}

func nightPath(scope, subject string) string {
	if subject == "" {
		return "/api/v1/quiet-hours/" + scope
	}
	return "/api/v1/quiet-hours/" + scope + "?subject=" + url.QueryEscape(subject)
}

func TestBucketsReadBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("buckets")
	limits := object{"rate": object{"limit": 30.0, "per": "1m", "burst": 5.0}, "calendar": object{"limit": 500.0, "every": "day", "timezone": "Asia/Kolkata"}, "concurrency": 4.0}

	f.admin.send("PUT", "/api/v1/buckets/email.daily", limits).wants(t, 200)

	var got object
	f.operator.send("GET", "/api/v1/buckets/email.daily", nil).wants(t, 200).into(t, &got)
	want := object{"name": "email.daily", "retired_at": nil, "permits": 5.0, "calendar_used": 0.0, "in_use": 0.0, "opens_at": nil, "closed_until": nil, "paused": false, "due": 0.0, "waiting": 0.0}
	maps.Copy(want, limits)
	delete(got, "etag")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bucket (-want +got):\n%s", diff)
	}
	f.admin.send("DELETE", "/api/v1/buckets/default", nil).wants(t, 409)
	f.admin.send("DELETE", "/api/v1/buckets/email.daily", nil).wants(t, 204)
	var names struct{ Items []string }
	f.agent.send("GET", "/api/v1/bucket-names", nil).wants(t, 200).into(t, &names)
	if diff := cmp.Diff([]string{"default"}, names.Items); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	f.operator.send("GET", "/api/v1/buckets/none", nil).wants(t, 404)
}

func TestToolsShowTheirRecipients(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("recipients")
	type limits struct {
		Recipients []string
		Confirmed  bool `json:"recipients_confirmed"`
		Scopes     []string
	}
	shown := func() limits {
		var list struct {
			Items []struct {
				Tool string
				limits
			}
		}
		f.agent.send("GET", "/api/v1/tools", nil).wants(t, 200).into(t, &list)
		for _, it := range list.Items {
			if it.Tool == "mail:write" {
				return it.limits
			}
		}
		t.Fatal("no tool write")
		return limits{}
	}

	guessed := shown()
	f.admin.send("PUT", "/api/v1/tools/mail:write/rule", object{"recipients": []string{"/cc/*"}, "scopes": []string{"mail:send"}}).wants(t, 200)
	confirmed := shown()

	if diff := cmp.Diff(limits{[]string{"/to"}, false, []string{}}, guessed); diff != "" {
		t.Errorf("guessed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(limits{[]string{"/cc/*"}, true, []string{"mail:send"}}, confirmed); diff != "" {
		t.Errorf("confirmed (-want +got):\n%s", diff)
	}
}

func TestDoNotContactIsPaged(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("contacts")
	f.operator.send("POST", "/api/v1/do-not-contact", object{"entries": []object{
		{"value": "C@example.org", "reason": "r"}, {"value": "\"a:b\"@example.org"}, {"kind": "domain", "value": "x.example"}, {"value": "@bo"},
	}}).wants(t, 200)
	type list struct {
		Items []struct{ Kind, Value string }
		Next  string `json:"next_cursor"`
	}

	var all []string
	query := "?limit=1"
	for range 9 {
		var p list
		f.operator.send("GET", "/api/v1/do-not-contact"+query, nil).wants(t, 200).into(t, &p)
		for _, it := range p.Items {
			all = append(all, it.Kind+" "+it.Value)
		}
		if p.Next == "" {
			break
		}
		query = "?limit=1&cursor=" + p.Next
	}

	if diff := cmp.Diff([]string{"domain x.example", `email "a:b"@example.org`, "email c@example.org", "handle bo"}, all); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	var some list
	f.operator.send("GET", "/api/v1/do-not-contact?kind=email&prefix=C@EX", nil).wants(t, 200).into(t, &some)
	if len(some.Items) != 1 {
		t.Errorf("prefix found %d, want 1", len(some.Items))
	}
	f.operator.send("GET", "/api/v1/do-not-contact?cursor=x", nil).wants(t, 400)
	f.operator.send("GET", "/api/v1/do-not-contact?cursor=MTphY3Rpb25zOng", nil).wants(t, 400)
}

func TestRecipientsAreCheckedAsByTheGate(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("check")
	f.admin.send("PUT", "/api/v1/settings", object{"timezone": "UTC", "phone_region": "DE", "plus_addressing": true}).wants(t, 200)
	f.operator.send("POST", "/api/v1/do-not-contact", object{"entries": []object{
		{"value": "ana@example.org", "reason": "asked"}, {"value": "rival.example"}, {"value": "030 123456"}, {"value": "old@example.org", "expires_at": "2020-01-01T00:00:00Z"},
	}}).wants(t, 200)

	for text, want := range map[string]string{
		"Ana <ANA+shop@example.org>":          "email ana@example.org asked",
		"mailto:bo@mail.rival.example?cc=x@y": "domain rival.example ",
		"+49 (30) 12 34 56":                   "phone +4930123456 ",
		"a\u200bna@example.org":               "email ana@example.org asked",
		"old@example.org":                     "",
		"анна@пример.рф":                      "",
		strings.Repeat("a", 1000):             "",
	} {
		var got struct {
			Listed   bool
			Readings []struct {
				Kind, Value, Reason string
				Listed              bool
			}
		}
		f.operator.send("POST", "/api/v1/do-not-contact/check", object{"value": text}).wants(t, 200).into(t, &got)

		var listed []string
		for _, r := range got.Readings {
			if r.Listed {
				listed = append(listed, r.Kind+" "+r.Value+" "+r.Reason)
			}
		}
		if got.Listed != (want != "") || want != "" && !slices.Contains(listed, want) {
			t.Errorf("check of %.40q = %v %v, want %q", text, got.Listed, listed, want)
		}
	}
	f.operator.send("POST", "/api/v1/do-not-contact/check", object{"value": ""}).wants(t, 400)
	f.agent.send("POST", "/api/v1/do-not-contact/check", object{"value": "ana@example.org"}).wants(t, 403)
}

func TestQuietHoursArePreviewed(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("preview")
	f.admin.send("PUT", "/api/v1/buckets/mail", object{}).wants(t, 200)
	for i, bucket := range []string{"mail", "mail", "default"} {
		body := proposal("read", object{})
		body["constraints"] = object{"rate_bucket": bucket, "not_before": "2099-01-0" + strconv.Itoa(3+i) + "T12:30:00Z"}
		f.agent.send("POST", "/api/v1/actions", body).wants(t, 201)
	}
	type preview struct {
		Intervals []struct{ From, Until string }
		Changes   []struct {
			At        string
			BySeconds int `json:"by_seconds"`
		} `json:"clock_changes"`
		Waiting *int
	}
	body := object{"timezone": "Europe/Berlin", "windows": []object{{"days": []string{"sat", "sun"}, "from": "13:00", "until": "14:00"}}}
	ask := func(query string) (p preview) {
		f.operator.send("POST", "/api/v1/quiet-hours/preview?from=2099-01-02T00:00:00Z"+query, body).wants(t, 200).into(t, &p)
		return p
	}

	if p := ask(""); len(p.Intervals) != 4 || p.Intervals[0].From != "2099-01-03T13:00:00+01:00" || p.Waiting != nil {
		t.Errorf("preview = %+v, want four intervals and no count", p)
	}
	for query, want := range map[string]int{"&scope=tenant": 2, "&scope=bucket&subject=mail": 2, "&scope=bucket&subject=default": 0} {
		if p := ask(query); p.Waiting == nil || *p.Waiting != want {
			t.Errorf("preview of %s counts %v, want %d", query, p.Waiting, want)
		}
	}
	var listed struct{ Items []any }
	if f.operator.send("GET", "/api/v1/quiet-hours", nil).wants(t, 200).into(t, &listed); len(listed.Items) > 0 {
		t.Errorf("a preview stored %v", listed.Items)
	}
	for _, query := range []string{"?from=0001-01-01T00:00:00Z", "?from=9999-12-31T00:00:00Z", "?from=soon", "?scope=planet", "?scope=bucket"} {
		f.operator.send("POST", "/api/v1/quiet-hours/preview"+query, body).wants(t, 400)
	}
	f.operator.send("POST", "/api/v1/quiet-hours/preview", object{"timezone": "UTC", "windows": []object{{"from": "00:00", "until": "24:00"}}}).wants(t, 400)
	f.agent.send("POST", "/api/v1/quiet-hours/preview", body).wants(t, 403)
}

func TestContactsGoInAndOutAsCSV(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("csv")
	text := "kind,value,reason,source,expires_at\n" + "domain,x.example,\"a, b\",s,2027-01-31T00:00:00Z\n" + "email,a@example.org,,,\n"

	f.admin.send("POST", "/api/v1/do-not-contact/import?dry_run=true", csv(text)).wants(t, 200)
	if got := string(f.admin.send("GET", "/api/v1/do-not-contact/export", nil).wants(t, 200).body); strings.Count(got, "\n") != 1 {
		t.Errorf("a dry run stored something: %q", got)
	}
	var counts struct{ Added, Changed int }
	f.admin.send("POST", "/api/v1/do-not-contact/import", csv(text)).wants(t, 200).into(t, &counts)
	got := string(f.admin.send("GET", "/api/v1/do-not-contact/export", nil).wants(t, 200).body)

	if got != text || counts.Added != 2 || counts.Changed != 0 {
		t.Errorf("export = %q, want what was imported; counts %+v", got, counts)
	}
	p := f.admin.send("POST", "/api/v1/do-not-contact/import", csv("value\nb@example.org\n"+marker+"@\n")).wants(t, 400).problem(t)
	if len(p.Errors) != 1 || p.Errors[0].Pointer != "/lines/3/columns/1" {
		t.Errorf("errors = %+v, want one of line 3", p.Errors)
	}
	if again := string(f.admin.send("GET", "/api/v1/do-not-contact/export", nil).wants(t, 200).body); again != text {
		t.Errorf("a file with a wrong line was imported in part: %q", again)
	}
	f.admin.send("POST", "/api/v1/do-not-contact/import", object{"value": 1}).wants(t, http.StatusUnsupportedMediaType)
	f.admin.send("POST", "/api/v1/do-not-contact/import", csv("")).wants(t, 400)
}

func TestPausesReadBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("pauses")
	var statuses []int
	pause := func(body object) (p struct {
		ID   string `json:"pause_id"`
		Kill bool
	}) {
		a := f.operator.send("POST", "/api/v1/pauses", body)
		a.into(t, &p)
		if a.header.Get("Location") != "/api/v1/pauses/"+p.ID {
			t.Errorf("Location = %q, want the pause %s", a.header.Get("Location"), p.ID)
		}
		statuses = append(statuses, a.status)
		return p
	}

	first := pause(object{"scope": "tool", "subject": "mail:read", "reason": "odd answers"})
	again := pause(object{"scope": "tool", "subject": "mail:read", "reason": "another"})
	killed := pause(object{"scope": "tool", "subject": "mail:read", "reason": "worse", "kill": true})

	if first.ID != again.ID || again.ID != killed.ID || again.Kill || !killed.Kill {
		t.Errorf("paused %+v, %+v, killed %+v, want one pause that became a kill", first, again, killed)
	}
	if !slices.Equal(statuses, []int{201, 200, 200}) {
		t.Errorf("statuses = %v, want one pause that was made, and twice the same", statuses)
	}
	f.operator.send("DELETE", "/api/v1/pauses/"+first.ID, nil).wants(t, 204)
	f.operator.send("DELETE", "/api/v1/pauses/"+first.ID, nil).wants(t, 404)
	pause(object{"scope": "tenant", "reason": "lunch"})
	for query, want := range map[string]int{"": 2, "?active=true": 1} {
		var list struct{ Items []object }
		f.operator.send("GET", "/api/v1/pauses"+query, nil).wants(t, 200).into(t, &list)
		if len(list.Items) != want {
			t.Errorf("pauses%s = %v, want %d", query, list.Items, want)
		}
	}
}

func TestLimitsAsOneDocument(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("document")
	doc := object{
		"settings": object{"timezone": "Europe/Berlin", "phone_region": "DE", "plus_addressing": true, "session_pending_max": 25.0, "session_minute_max": 0.0},
		"buckets": []any{
			object{"name": "default"}, object{"name": "email.daily", "calendar": object{"limit": 500.0, "every": "day"}},
		},
		"quiet_hours": []any{object{"scope": "tenant", "timezone": "UTC", "windows": []any{object{"from": "20:00", "until": "08:00+1"}}, "spread": "1m"}},
		"employees":   []any{object{"employee_id": "default", "trust": "low", "scopes": []any{"mail:*"}}},
		"tools":       []any{object{"tool": "mail:write", "recipients": []any{"/to"}, "retry": object{"base": "2s", "cap": "10m"}}},
	}
	kinds := func(a answer) []string {
		var out struct {
			Changes []struct{ Change, Section, Name string }
		}
		a.wants(t, 200).into(t, &out)
		var all []string
		for _, c := range out.Changes {
			all = append(all, c.Change+" "+c.Section+" "+c.Name)
		}
		return all
	}

	planned := kinds(f.admin.send("PUT", "/api/v1/limits?dry_run=true", doc))
	var untouched object
	f.operator.send("GET", "/api/v1/limits", nil).wants(t, 200).into(t, &untouched)
	done := kinds(f.admin.replace("/api/v1/limits", doc))
	var got object
	f.operator.send("GET", "/api/v1/limits", nil).wants(t, 200).into(t, &got)
	again := kinds(f.admin.replace("/api/v1/limits", got))

	want := []string{"unchanged buckets default", "added buckets email.daily", "added employees default", "added quiet_hours tenant", "changed settings ", "added tools mail:write"}
	if diff := cmp.Diff(want, planned); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(planned, done); diff != "" {
		t.Errorf("what was done is not what was said (-said +done):\n%s", diff)
	}
	if len(untouched["quiet_hours"].([]any)) > 0 {
		t.Error("the dry run changed something")
	}
	if diff := cmp.Diff(doc, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	for _, line := range again {
		if !strings.HasPrefix(line, "unchanged ") {
			t.Errorf("to put back what was read is %q", line)
		}
	}
}

func TestBadLimitsNameTheField(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("bad")
	before := f.operator.send("GET", "/api/v1/limits", nil).wants(t, 200).body

	for name, tt := range map[string]struct {
		method, path string
		body         object
		want         string
	}{
		"rate of zero":     {"PUT", "/api/v1/buckets/b", object{"rate": object{"limit": 0, "per": "1m"}}, "/rate/limit"},
		"no interval":      {"PUT", "/api/v1/buckets/b", object{"rate": object{"limit": 1, "per": "0s"}}, "/rate/per"},
		"odd interval":     {"PUT", "/api/v1/buckets/b", object{"rate": object{"limit": 1, "per": "a while"}}, "/rate/per"},
		"burst":            {"PUT", "/api/v1/buckets/b", object{"rate": object{"limit": 1, "per": "1m", "burst": 2}}, "/rate/burst"},
		"zone":             {"PUT", "/api/v1/buckets/b", object{"calendar": object{"limit": 1, "every": "day", "timezone": "Mars/Base"}}, "/calendar/timezone"},
		"tenant's zone":    {"PUT", "/api/v1/settings", object{"timezone": "Local"}, "/timezone"},
		"region":           {"PUT", "/api/v1/settings", object{"timezone": "UTC", "phone_region": "XX"}, "/phone_region"},
		"session's limit":  {"PUT", "/api/v1/settings", object{"timezone": "UTC", "session_pending_max": -1}, "/session_pending_max"},
		"window":           {"PUT", "/api/v1/quiet-hours/tenant", object{"timezone": "UTC", "windows": []object{{"from": "20:00", "until": "08:00"}}}, "/windows/0/until"},
		"unknown bucket":   {"PUT", nightPath("bucket", "none"), night(), "/subject"},
		"a subject":        {"PUT", nightPath("tenant", "x"), night(), "/subject"},
		"contact":          {"POST", "/api/v1/do-not-contact", object{"entries": []object{{"value": "a@b.org"}, {"kind": "email", "value": "nobody"}}}, "/entries/1/value"},
		"trust":            {"PUT", "/api/v1/employees/default", object{"trust": "much"}, "/trust"},
		"scope":            {"PUT", "/api/v1/employees/default", object{"trust": "low", "scopes": []string{"a:*:b"}}, "/scopes/0"},
		"pattern":          {"PUT", "/api/v1/tools/mail:write/rule", object{"recipients": []string{"to"}}, "/recipients/0"},
		"cap below base":   {"PUT", "/api/v1/tools/mail:write/rule", object{"retry": object{"base": "1m", "cap": "1s"}}, "/retry/cap"},
		"pause of nothing": {"POST", "/api/v1/pauses", object{"scope": "source", "subject": "none", "reason": "x"}, "/subject"},
		"of everything":    {"POST", "/api/v1/pauses", object{"scope": "everything", "reason": "x"}, "/scope"},
		"a document":       {"PUT", "/api/v1/limits?dry_run=true", object{"buckets": []object{{"name": "good"}, {"name": "bad", "rate": object{"limit": 1, "per": "1h", "burst": 9}}}}, "/buckets/1/rate/burst"},
		"twice":            {"PUT", "/api/v1/limits?dry_run=true", object{"buckets": []object{{"name": "b"}, {"name": "b"}}}, "/buckets/1"},
		"a late section":   {"PUT", "/api/v1/limits?dry_run=true", object{"buckets": []object{{"name": "good"}}, "tools": []object{{"tool": "mail:none"}}}, "/tools/0/tool"},
	} {
		p := f.admin.send(tt.method, tt.path, tt.body).wants(t, 400).problem(t)
		if len(p.Errors) != 1 || p.Errors[0].Pointer != tt.want {
			t.Errorf("%s: errors = %+v, want one at %s", name, p.Errors, tt.want)
		}
	}

	if after := f.operator.send("GET", "/api/v1/limits", nil).wants(t, 200).body; string(before) != string(after) {
		t.Errorf("bad input changed something (-before +after):\n%s", cmp.Diff(string(before), string(after)))
	}
	var list struct{ Items []object }
	if f.operator.send("GET", "/api/v1/do-not-contact", nil).wants(t, 200).into(t, &list); len(list.Items) > 0 {
		t.Errorf("bad input left entries: %v", list.Items)
	}
}

func TestAnotherTenantsLimitsAreOutOfReach(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	one, two := h.tenant("one"), h.tenant("two")
	employee := uuid.NewString()
	one.limited("mine", employee)
	one.operator.send("POST", "/api/v1/do-not-contact", object{"entries": []object{{"value": "a@example.org"}}}).wants(t, 200)
	before := one.operator.send("GET", "/api/v1/limits", nil).wants(t, 200).body

	for _, v := range []visit{
		{"GET", "/api/v1/buckets/mine", nil, 404}, {"DELETE", "/api/v1/buckets/mine", nil, 404}, {"POST", "/api/v1/buckets/mine/reopen", nil, 404},
		{"DELETE", "/api/v1/quiet-hours/bucket?subject=mine", nil, 404}, {"DELETE", "/api/v1/employees/" + employee, nil, 404},
		{"DELETE", "/api/v1/pauses/" + paused(one, "mine"), nil, 404}, {"POST", "/api/v1/breakers/mail/reset", nil, 404},
		{"POST", "/api/v1/pauses", object{"scope": "bucket", "subject": "mine", "reason": "x"}, 400},
		{"POST", "/api/v1/do-not-contact/remove", object{"entries": []object{{"value": "a@example.org"}}}, 200},
	} {
		two.admin.send(v.method, v.path, v.body).wants(t, v.want)
	}
	two.admin.replace("/api/v1/limits", object{"buckets": []object{}, "employees": []object{}, "quiet_hours": []object{}}).wants(t, 200)
	for _, list := range []string{"quiet-hours", "employees", "pauses", "breakers", "do-not-contact"} {
		var page struct{ Items []any }
		if two.admin.send("GET", "/api/v1/"+list, nil).wants(t, 200).into(t, &page); len(page.Items) > 0 {
			t.Errorf("%s shows another tenant's rows: %v", list, page.Items)
		}
		if one.operator.send("GET", "/api/v1/"+list, nil).wants(t, 200).into(t, &page); len(page.Items) == 0 {
			t.Errorf("%s lost its own row", list)
		}
	}
	if after := one.operator.send("GET", "/api/v1/limits", nil).wants(t, 200).body; string(before) != string(after) {
		t.Errorf("another tenant changed it:\n%s", cmp.Diff(string(before), string(after)))
	}
}

func TestCheckDocumentWithoutAServer(t *testing.T) {
	t.Parallel()

	if err := restlimits.CheckDocument([]byte(`{"buckets":[{"name":"a"}]}`)); err != nil {
		t.Errorf("CheckDocument = %v, want nil", err)
	}
	for text, want := range map[string]string{
		`{"buckets":[{"name":"a","colour":1}]}`:                                                            "/buckets/0/colour",
		`{"buckets":[{"name":"a","rate":{"limit":1,"per":"1x"}}]}`:                                         "/buckets/0/rate/per",
		`{"buckets":[{"name":"a","rate":{"limit":1,"per":"1s","burst":2}}]}`:                               "/buckets/0/rate/burst",
		`{"quiet_hours":[{"scope":"tenant","timezone":"UTC","windows":[{"from":"7:00","until":"8:00"}]}]}`: "/quiet_hours/0/windows/0/from",
	} {
		broken, ok := restlimits.CheckDocument([]byte(text)).(*envelope.InvalidError)
		if !ok || broken.Fields[0].Pointer != want {
			t.Errorf("CheckDocument(%s) = %v, want one at %s", text, broken, want)
		}
	}
}

// paused returns the id of the active pause of a subject.
func paused(f *tenantFixture, subject string) string {
	f.t.Helper()
	var list struct {
		Items []struct {
			ID      string `json:"pause_id"`
			Subject string
		}
	}
	f.operator.send("GET", "/api/v1/pauses?active=true", nil).wants(f.t, 200).into(f.t, &list)
	for _, p := range list.Items {
		if p.Subject == subject {
			return p.ID
		}
	}
	f.t.Fatalf("no pause of %s in %+v", subject, list.Items)
	return ""
}
