package envelope_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

const (
	actionText   = "0197a3c0-5f3e-7c11-9d2b-2f1c6a7e4b10"
	tenantText   = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
	employeeText = "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b"
)

// parseID returns the result of UnmarshalText.
func parseID[T any, P interface {
	*T
	UnmarshalText([]byte) error
}](tb testing.TB, text string) T {
	tb.Helper()
	var id T
	if err := P(&id).UnmarshalText([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	return id
}

func TestParseReadsEveryField(t *testing.T) {
	t.Parallel()
	raw := `{
		"version": 1,
		"action_id": "` + strings.ToUpper(actionText) + `",
		"external_id": "digest\u002d1",
		"tenant_id": "` + tenantText + `",
		"employee_id": "` + employeeText + `",
		"type": "mcp.exec",
		"tool": {"name": "chat.postMessage", "source": "slack-main", "composio_app": "slack"},
		"args": {"text": "caf\u00e9 \/ \"x\"", "n": [1.0, 1e2, 0.10], "channel": "#cs"},
		"risk": "low",
		"approval": "required",
		"session_id": "chat 42",
		"automation_id": "daily",
		"constraints": {
			"rate_bucket": "slack.minute",
			"must_run_before": "2026-07-01T12:00:00.1234569+02:00",
			"not_before": "2026-07-01T08:00:00Z",
			"urgent": true
		}
	}`
	want := &envelope.Proposal{
		Version:      1,
		ActionID:     parseID[envelope.ActionID](t, actionText),
		ExternalID:   "digest-1",
		TenantID:     parseID[envelope.TenantID](t, tenantText),
		EmployeeID:   parseID[envelope.EmployeeID](t, employeeText),
		Type:         "mcp.exec",
		Tool:         envelope.Tool{Name: "chat.postMessage", Source: "slack-main", ComposioApp: "slack"},
		Args:         []byte(`{"channel":"#cs","n":[1,100,0.1],"text":"café / \"x\""}`),
		Risk:         envelope.RiskLow,
		Approval:     envelope.ApprovalRequired,
		SessionID:    "chat 42",
		AutomationID: "daily",
		Constraints: envelope.Constraints{
			RateBucket:    "slack.minute",
			MustRunBefore: time.Date(2026, 7, 1, 10, 0, 0, 123456000, time.UTC),
			NotBefore:     time.Date(2026, 7, 1, 8, 0, 0, 0, time.UTC),
			Urgent:        true,
		},
	}

	got, err := envelope.Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse (-want +got):\n%s", diff)
	}
}

func TestParseDoesNotRetainItsInput(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"type":"mcp.exec","tool":{"name":"echo"},"args":{"a":"b"},"session_id":"s"}`)
	want, err := envelope.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}

	got, err := envelope.Parse(raw)
	clear(raw)

	if err != nil {
		t.Fatal(err)
	}
	if got.Tool.Name != "echo" || string(got.Args) != `{"a":"b"}` || got.SessionID != "s" {
		t.Errorf("Parse shares memory with its input: %+v, want %+v", got, want)
	}
}

func TestParseLimitsSize(t *testing.T) {
	t.Parallel()
	envelopeOf := func(size int) []byte {
		const head, tail = `{"type":"mcp.exec","tool":{"name":"t"},"args":{"a":"`, `"}}`
		return []byte(head + strings.Repeat("x", size-len(head)-len(tail)) + tail)
	}

	if _, err := envelope.Parse(envelopeOf(envelope.MaxBytes)); err != nil {
		t.Errorf("Parse of MaxBytes = %v, want no error", err)
	}
	_, err := envelope.Parse(envelopeOf(envelope.MaxBytes + 1))
	if diff := cmp.Diff([]string{" size"}, problemsOf(t, err)); diff != "" {
		t.Errorf("Parse of MaxBytes + 1 (-want +got):\n%s", diff)
	}
}

func TestParseNeverRepeatsAValue(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	const head = `{"type":"mcp.exec","tool":{"name":"t"},"args":{},`
	texts := []string{
		secret, `"` + secret + `"`, `[` + secret,
		`{"type":"` + secret + `"}`,
		head + `"action_id":"` + secret + `"}`,
		head + `"external_id":"` + secret + `\n"}`,
		head + `"external_id":"` + strings.Repeat(secret, 40) + `"}`,
		head + `"risk":"` + secret + `"}`,
		head + `"approval":"` + secret + `"}`,
		head + `"priority":"` + secret + `"}`,
		head + `"result":"` + secret + `"}`,
		head + `"version":"` + secret + `"}`,
		head + `"constraints":{"rate_bucket":":` + secret + `","must_run_before":"` + secret + `"}}`,
		head + `"session_id":"` + secret + `\ud800"}`,
		head + `"session_id":"` + secret + `\q"}`,
		head + `"tool":"` + secret + `"} ` + secret,
	}

	for i, text := range texts {
		_, err := envelope.Parse([]byte(text))
		if err == nil {
			t.Errorf("Parse of text %d = no error, want one", i)
			continue
		}
		if e, _ := errors.AsType[*envelope.InvalidError](err); strings.Contains(fmt.Sprintf("%v %+v", err, *e), secret) {
			t.Errorf("Parse of text %d repeats the value: %+v", i, *e)
		}
	}
}

func TestParseBoundsItsReport(t *testing.T) {
	t.Parallel()
	const maxFields, maxPointer = 33, 512
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `"f%d":1,`, i)
	}
	deep := strings.Repeat(`{"`+strings.Repeat("k", 60)+`":`, 30) + `{"a":1,"a":2}` + strings.Repeat("}", 30)
	tests := map[string]string{
		"many unknown fields, then no JSON": `{` + many.String() + `!}`,
		"a problem below long names":        `{"type":"mcp.exec","tool":{"name":"t"},"args":` + deep + `}`,
	}

	for name, text := range tests {
		_, err := envelope.Parse([]byte(text))
		e, ok := errors.AsType[*envelope.InvalidError](err)
		if !ok || len(e.Fields) > maxFields {
			t.Errorf("%s: Parse = %d problems, want 1 to %d", name, len(e.Fields), maxFields)
			continue
		}
		for _, f := range e.Fields {
			if len(f.Pointer) > maxPointer {
				t.Errorf("%s: a pointer has %d bytes, want at most %d", name, len(f.Pointer), maxPointer)
			}
		}
	}
}

func TestInvalidErrorText(t *testing.T) {
	t.Parallel()

	_, err := envelope.Parse([]byte(`{"a\nb":1,"risk":"x","approval":"y","type":"z"}`))

	const want = `invalid envelope: "/a\nb" is not a field of an envelope; what a tool needs goes into args` +
		`; "/risk" must be "low", "medium" or "high"` +
		`; "/approval" must be "auto" or "required"; Countersign sets the other states; and 3 more`
	if err == nil || err.Error() != want {
		t.Errorf("Error() = %v, want %s", err, want)
	}
}

func TestValidateFollowsParse(t *testing.T) {
	t.Parallel()
	good := envelope.Proposal{Type: envelope.TypeExec, Tool: envelope.Tool{Name: "echo"}, Args: []byte(`{"b":1,"a":2}`)}
	with := func(change func(p *envelope.Proposal)) envelope.Proposal {
		p := good
		change(&p)
		return p
	}
	tests := []struct {
		name     string
		proposal envelope.Proposal
		want     []string
	}{
		{"a good one", good, nil},
		{"everything set", with(func(p *envelope.Proposal) {
			p.Version, p.ActionID, p.ExternalID = 1, envelope.NewActionID(), "x"
			p.TenantID, p.EmployeeID = envelope.TenantID(p.ActionID), envelope.EmployeeID(p.ActionID)
			p.SessionID, p.AutomationID = "s", "a"
			p.Risk, p.Approval = envelope.RiskHigh, envelope.ApprovalAuto
			p.Constraints.NotBefore = time.Date(2026, 7, 1, 8, 0, 0, 1, time.Local)
		}), nil},
		{"the zero value", envelope.Proposal{}, []string{"/tool/name required", "/type required", "/args required"}},
		{"args that are not JSON", with(func(p *envelope.Proposal) { p.Args = []byte(`{},"risk":"low"`) }), []string{"/args syntax"}},
		{"args and more", with(func(p *envelope.Proposal) {
			p.Args = []byte(`{"a":1,"a":2}`)
			p.Risk = "dire"
		}), []string{"/args/a duplicate_key", "/risk enum"}},
		{"args that are no object", with(func(p *envelope.Proposal) { p.Args = []byte(`[]`) }), []string{"/args type"}},
		{"text that is not UTF-8", with(func(p *envelope.Proposal) { p.ExternalID = "a\xffb" }), []string{"/external_id encoding"}},
		{"text with NUL", with(func(p *envelope.Proposal) { p.SessionID = "a\x00b" }), []string{"/session_id nul"}},
		{"an approval that others decide", with(func(p *envelope.Proposal) { p.Approval = envelope.ApprovalGranted }), []string{"/approval enum"}},
		{"a year beyond", with(func(p *envelope.Proposal) {
			p.Constraints.MustRunBefore = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
		}), []string{"/constraints/must_run_before format"}},
		{"a version to come", with(func(p *envelope.Proposal) { p.Version = 2 }), []string{"/version enum"}},
	}

	for _, tt := range tests {
		err := tt.proposal.Validate()
		var got []string
		if err != nil {
			got = problemsOf(t, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: Validate() (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	a, b := envelope.NewActionID(), envelope.NewActionID()

	if a == b || a.String() >= b.String() || a.String()[14] != '7' {
		t.Errorf("NewActionID() = %s, then %s, want two UUIDv7 in order", a, b)
	}
	for _, text := range []string{"", "x", strings.ReplaceAll(actionText, "-", ""), "{" + actionText + "}", "00000000-0000-0000-0000-000000000000"} {
		var id envelope.TenantID
		if err := id.UnmarshalText([]byte(text)); !errors.Is(err, fault.Invalid) || id != (envelope.TenantID{}) {
			t.Errorf("UnmarshalText(%q) = %v, want fault.Invalid", text, err)
		}
	}
	if got := parseID[envelope.EmployeeID](t, strings.ToUpper(employeeText)).String(); got != employeeText {
		t.Errorf("String() = %s, want %s", got, employeeText)
	}
	if got, err := parseID[envelope.TenantID](t, tenantText).MarshalText(); err != nil || string(got) != tenantText {
		t.Errorf("MarshalText() = %s, %v, want %s", got, err, tenantText)
	}
}

func TestAParserKeepsNothingOfTheTextBefore(t *testing.T) {
	t.Parallel()
	var parser envelope.Parser
	var all, want []*envelope.Proposal
	for _, text := range []string{
		`{"type":"mcp.exec","tool":{"name":"a","source":"s"},"args":{"b":[1,{"c":"long text"}],"a":2},"external_id":"one"}`,
		`{"type":"mcp.exec","tool":{"name":"b"},"args":{},"external_id":"two","constraints":{"rate_bucket":"x"}}`,
		`{"type":"mcp.exec","tool":{"name":"c"},"args":{"deep":[[[`,
		`{"colour":1}`,
		`{"type":"mcp.exec","tool":{"name":"d"},"args":{"z":1e2,"a":"\u00e9"},"risk":"high"}`,
		``,
	} {
		alone, wantErr := envelope.Parse([]byte(text))
		p, err := parser.Parse([]byte(text))
		if diff := cmp.Diff(wantErr, err); diff != "" {
			t.Errorf("%s (-Parse +Parser):\n%s", text, diff)
		}
		all, want = append(all, p), append(want, alone)
	}

	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("the proposals after the last one (-Parse +Parser):\n%s", diff)
	}
}
