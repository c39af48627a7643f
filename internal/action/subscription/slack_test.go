package subscription_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

func TestARequestInSlackLeadsToThePage(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.subscribe(subscription.Subscription{Name: "team", Source: "team", Kinds: subscription.DefaultKinds(catalog.KindSlack), Channel: "C1"})
	id := h.propose("ask", `{"to":"bo"}`, 1)[0]

	h.relayAll()

	sent := h.deliveries(s)
	if len(sent) != 1 || sent[0].args.buttons()["countersign_open"] != "https://countersign.example.com/actions/"+id.String() {
		t.Errorf("messages = %+v, want a button that opens the action on the page", sent)
	}
}

func TestARequestInSlackFollowsTheDecision(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toTeam()
	id := h.propose("ask", `{"to":"bo"}`, 1)[0]
	h.relayAll()
	h.settle(sent)
	h.relayAll() // that it is out changes nothing

	first := h.deliveries(s)
	if len(first) != 1 || first[0].tool != "slack.message.send" || first[0].args.Channel != "C1" {
		t.Fatalf("messages = %+v, want the request", first)
	}
	buttons := first[0].args.buttons()
	if !strings.HasPrefix(buttons["countersign_approve"], id.String()+".") || buttons["countersign_deny"] != buttons["countersign_approve"] ||
		buttons["countersign_open"] != "https://ops.example.com/actions/"+id.String() {
		t.Errorf("buttons = %v", buttons)
	}

	if err := h.approvals.Edit(t.Context(), h.decider(), id, approval.Edit{Args: json.RawMessage(`{"to":"cy"}`)}); err != nil {
		t.Fatal(err)
	}
	h.relayAll()
	edited := h.deliveries(s)
	if len(edited) != 2 || edited[1].tool != "slack.message.update" || edited[1].args.TS != first[0].id.String() ||
		edited[1].args.buttons()["countersign_approve"] == buttons["countersign_approve"] || !strings.Contains(edited[1].raw, "cy") {
		t.Fatalf("after an edit: %+v, want the message changed, with other buttons", edited[1:])
	}

	_, etag, _ := strings.Cut(edited[1].args.buttons()["countersign_approve"], ".")
	h.approve(id, etag)
	h.relayAll()
	h.settle(sent)
	h.relayAll()
	all := h.deliveries(s)
	if len(all) != 3 || all[2].tool != "slack.message.update" || !strings.Contains(all[2].args.Text, "Approved") || len(all[2].args.buttons()) > 0 ||
		!strings.Contains(all[2].raw, "ada") {
		t.Errorf("after the decision: %+v, want the message without buttons", all[2:])
	}
	if got := one[int](h, "SELECT count(1) FROM approval_messages"); got != 0 {
		t.Errorf("%d messages are still looked after", got)
	}
}

// TestADecisionBeforeTheMessageIsOut shows once the message is.
func TestADecisionBeforeTheMessageIsOut(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toTeam()
	id := h.propose("ask", `{}`, 1)[0]
	h.relayAll()
	if err := h.approvals.Deny(t.Context(), h.decider(), id, approval.Denial{Note: "no"}); err != nil {
		t.Fatal(err)
	}
	h.relayAll()
	if got := h.deliveries(s); len(got) != 1 {
		t.Fatalf("%d messages before the first is out, want 1", len(got))
	}

	h.settle(sent)
	h.relayAll()

	got := h.deliveries(s)
	if len(got) != 2 || !strings.Contains(got[1].args.Text, "Denied") {
		t.Errorf("messages = %+v, want the denial shown", got)
	}
}

func TestFailedMessagesAreNotUpdated(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	s := h.toTeam()
	id := h.propose("ask", `{}`, 1)[0]
	h.relayAll()
	h.settle(func(_ outbox.Item, s *outbox.Settlement) {
		s.Status, s.Code, s.DeadLetter = envelope.StatusFailed, "not_found", outbox.Refused
	})
	h.approve(id, "")

	h.relayAll()

	if got := h.deliveries(s); len(got) != 1 || one[int](h, "SELECT count(1) FROM approval_messages") != 0 {
		t.Errorf("messages = %+v, want no change of one that is not there", got)
	}
}

// TestAgentTextsAreEscaped: agents' texts are shown, but cannot
// make a mention, a link or a button, and cannot hide anything.
func TestAgentTextsAreEscaped(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args string
		// never must not be in the message, shown must be.
		never, shown []string
		approvable   bool
	}{
		"a mention":          {`{"a":"<!here> <!channel> <@U123> <#C1>"}`, []string{"<!here", "<@U", "<#C"}, []string{"&lt;!here&gt;", "&lt;@U123&gt;"}, true},
		"a link":             {`{"a":"<https://evil.example|Approve>"}`, []string{"<https"}, []string{"&lt;https://evil.example|Approve&gt;"}, true},
		"entities":           {`{"a":"&lt;!here&gt;"}`, []string{`"&lt;!here`}, []string{"&amp;lt;!here&amp;gt;"}, true},
		"turned text":        {"{\"a\":\"pay \u202e001\u202c\"}", []string{"\u202e", "\u202c"}, []string{`\u{202E}`}, true},
		"hidden text":        {"{\"a\":\"x\u200by\U000e0041\ufeff\u3164\"}", []string{"\u200b", "\U000e0041", "\ufeff", "\u3164"}, []string{`x\u{200B}y\u{E0041}\u{FEFF}\u{3164}`}, true},
		"more than fits":     {`{"a":"` + strings.Repeat("x", 5000) + `","b":"delete everything"}`, []string{`"b": "delete everything"`}, []string{"b “delete everything”", "cannot be approved here"}, false},
		"escapes do not fit": {`{"a":"` + strings.Repeat("<", 1500) + `"}`, nil, []string{"cannot be approved here"}, false},
		"a look-alike":       {`{"cc":[` + strings.Repeat(`"a@example.org",`, 100) + `{"to":"bo@аpple.com"}]}`, nil, []string{"⚠ bo@аpple.com looks like apple.com, which is well known"}, true},
		"hidden addresses":   {`{"a":"` + strings.Repeat(strings.Repeat("\u200b", 90)+"a@example.org ", 4) + `"}`, []string{"\u200b"}, []string{"⚠ and 1 more"}, false},
		"a hidden secret":    {`{"token":"delete everything"}`, []string{"delete everything"}, []string{"[REDACTED]", "cannot be approved here"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFixture(t)
			s := h.toTeam()
			h.propose("ask", test.args, 1)
			h.relayAll()
			got := h.deliveries(s)
			if len(got) != 1 {
				t.Fatalf("%d messages, want 1", len(got))
			}
			all := strings.Join(got[0].args.texts(), "\n")

			for _, text := range test.never {
				if strings.Contains(all, text) {
					t.Errorf("the message holds %q: %s", text, all)
				}
			}
			for _, text := range test.shown {
				if !strings.Contains(all, text) {
					t.Errorf("the message lacks %q: %s", text, all)
				}
			}
			if _, can := got[0].args.buttons()["countersign_approve"]; can != test.approvable {
				t.Errorf("it can be approved there: %t, want %t", can, test.approvable)
			}
			for _, b := range got[0].args.Blocks {
				if len(b.Text.Text) > 3000 || b.Type == "header" && len(b.Text.Text) > 150 || b.Text.Type == "mrkdwn" {
					t.Errorf("a block is too long for Slack, or formatted: %s of %d", b.Type, len(b.Text.Text))
				}
			}
		})
	}
}

func sign(secret, ts, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + ts + ":" + body))
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

func TestVerifySlack(t *testing.T) {
	t.Parallel()
	// The example of Slack's own documentation.
	const (
		secret = "8f742231b10e8888abcd99yyyzzz85a5"
		ts     = "1531420618"
		body   = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
		good   = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	)
	at := time.Unix(1531420618, 0)
	for name, test := range map[string]struct {
		secret, ts, signature, body string
		now                         time.Time
		ok                          bool
	}{
		"as documented":       {secret, ts, good, body, at, true},
		"four minutes late":   {secret, ts, good, body, at.Add(4 * time.Minute), true},
		"six minutes late":    {secret, ts, good, body, at.Add(6 * time.Minute), false},
		"from the future":     {secret, ts, good, body, at.Add(-6 * time.Minute), false},
		"another body":        {secret, ts, good, body + "&x=y", at, false},
		"another secret":      {secret + "x", ts, good, body, at, false},
		"no secret":           {"", ts, sign("", ts, body), body, at, false},
		"another time":        {secret, "1531420619", good, body, at, false},
		"a time in disguise":  {secret, "+1531420618", sign(secret, "+1531420618", body), body, at, false},
		"no time":             {secret, "", sign(secret, "", body), body, at, false},
		"another scheme":      {secret, ts, "v1" + good[2:], body, at, false},
		"no signature":        {secret, ts, "", body, at, false},
		"a shortened one":     {secret, ts, good[:20], body, at, false},
		"a time without ends": {secret, "99999999999999999999", good, body, at, false},
	} {
		if ok := subscription.VerifySlack(test.secret, test.ts, test.signature, []byte(test.body), test.now); ok != test.ok {
			t.Errorf("%s: VerifySlack = %t, want %t", name, ok, test.ok)
		}
	}
}

func form(payload string) []byte { return []byte(url.Values{"payload": {payload}}.Encode()) }

func TestParseInteraction(t *testing.T) {
	t.Parallel()
	const id = "019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b"
	press := func(button, value string) string {
		return `{"type":"block_actions","team":{"id":"T1"},"user":{"id":"U1","team_id":"T2"},"trigger_id":"t","container":{"channel_id":"C1","message_ts":"1.2"},"actions":[{"action_id":"` + button + `","value":"` + value + `"}]}`
	}
	submit := func(metadata, state string) string {
		return `{"type":"view_submission","team":{"id":"T1"},"user":{"id":"U1"},"view":{"callback_id":"countersign_reason","private_metadata":"` + metadata + `","state":{"values":` + state + `}}}`
	}
	var action envelope.ActionID
	if err := action.UnmarshalText([]byte(id)); err != nil {
		t.Fatal(err)
	}
	pressed := subscription.Interaction{Kind: subscription.InteractionApprove, Team: "T2", User: "U1", Channel: "C1", TS: "1.2", Trigger: "t", Action: action, ETag: "s"}
	submitted := subscription.Interaction{Kind: subscription.InteractionSubmitReason, Team: "T1", User: "U1", Channel: "C1", TS: "1.2", Action: action, ETag: "s", Reason: "too dear"}
	for name, test := range map[string]struct {
		payload string
		want    *subscription.Interaction
	}{
		"approve":             {press("countersign_approve", id+".s"), &pressed},
		"another's button":    {press("vote", "x"), &subscription.Interaction{Kind: subscription.InteractionOther, Team: "T2", User: "U1", Trigger: "t"}},
		"a form":              {submit(id+".s C1 1.2", `{"countersign_reason":{"countersign_reason":{"value":" too dear "}}}`), &submitted},
		"a value of nothing":  {press("countersign_approve", ""), nil},
		"a value without it":  {press("countersign_approve", id), nil},
		"a value of no id":    {press("countersign_deny", "x.s"), nil},
		"a form of no origin": {submit("", `{}`), nil},
		"a long reason":       {submit(id+".s C1 1.2", `{"countersign_reason":{"countersign_reason":{"value":"`+strings.Repeat("x", 2000)+`"}}}`), nil},
		"no JSON":             {`{"type":`, nil},
		"two buttons":         {`{"type":"block_actions","user":{"id":"U"},"actions":[{},{}]}`, nil},
		"another type":        {`{"type":"shortcut","user":{"id":"U1","team_id":"T1"}}`, &subscription.Interaction{Kind: subscription.InteractionOther, Team: "T1", User: "U1"}},
	} {
		got, err := subscription.ParseInteraction(form(test.payload))

		if test.want == nil {
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s: ParseInteraction = %+v, %v, want fault.Invalid", name, got, err)
			}
			continue
		}
		if diff := cmp.Diff(*test.want, got); err != nil || diff != "" {
			t.Errorf("%s: ParseInteraction: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for _, body := range []string{"", "payload=%zz", "payload=%7B%7D&payload=%7B%7D"} {
		if _, err := subscription.ParseInteraction([]byte(body)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("ParseInteraction(%q) = %v, want fault.Invalid", body, err)
		}
	}
}

func FuzzParseInteraction(f *testing.F) {
	f.Add([]byte(`{"type":"block_actions","user":{"id":"U1"},"team":{"id":"T1"},"actions":[{"action_id":"countersign_deny","value":"019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b.s"}],"container":{"channel_id":"C","message_ts":"1"}}`))
	f.Add([]byte(`{"type":"view_submission","view":{"callback_id":"countersign_reason","private_metadata":"a.b c d"}}`))
	f.Add([]byte(`{"type":"view_submission","view":{"state":{"values":{"countersign_reason":null}}}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		in, err := subscription.ParseInteraction(form(string(payload)))
		if err != nil || in.Kind == subscription.InteractionOther {
			return
		}
		if in.User == "" || in.Team == "" || in.Channel == "" || in.TS == "" || in.ETag == "" || in.Action == (envelope.ActionID{}) {
			t.Errorf("%s is read as %+v", payload, in)
		}
	})
}
