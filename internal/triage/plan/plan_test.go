package plan_test

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

func target() plan.Target {
	return plan.Target{
		At: mailbox.State{Location: mailbox.Location{Folder: "INBOX", Key: "7:42"}, Flags: []string{"\\Seen"}},
		Message: &message.Message{
			Identity: [32]byte{1, 2, 3}, MessageID: "a@shop.example", Subject: "Hello",
			From: []message.Address{{Addr: "news@shop.example"}},
		},
		Return: time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC),
	}
}

func config() plan.Config {
	return plan.Config{
		Source: "mail", Account: "ana", Junk: "Junk", LabelPrefix: "Countersign_",
		Labels: map[classify.Category]string{classify.Promotions: "adverts", classify.Social: ""},
	}
}

func wanting(category classify.Category, wants ...decide.Want) decide.Decision {
	return decide.Decision{Category: category, Wants: wants}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	const message = `"message":{"folder":"INBOX","identity":"0102030000000000000000000000000000000000000000000000000000000000","key":"7:42","message_id":"a@shop.example"}`
	const seen = `{"account":"ana","expected":{"folder":"INBOX"},`

	tests := map[string]struct {
		decision decide.Decision
		flags    []string
		tool     plan.Tool
		args     string
		approval envelope.Approval
		origin   plan.Origin
		parts    []plan.Part
		skip     string
	}{
		"a label by template": {decision: wanting(classify.Receipts, decide.Want{Action: decide.Label}),
			tool: plan.ToolLabel, args: seen + `"labels":{"add":["receipts"]},` + message + `}`, origin: plan.Templated},
		"a label of the configuration": {decision: wanting(classify.Promotions, decide.Want{Action: decide.Label, Confirm: true}),
			tool: plan.ToolLabel, args: seen + `"labels":{"add":["adverts"]},` + message + `}`, origin: plan.Configured, approval: envelope.ApprovalRequired},
		"no label is configured": {decision: wanting(classify.Social, decide.Want{Action: decide.Label}), skip: "the category social has no label"},
		"no label for primary":   {decision: wanting(classify.Primary, decide.Want{Action: decide.Label}), skip: "the category primary has no label"},
		"the label is set":       {decision: wanting(classify.Receipts, decide.Want{Action: decide.Label}), flags: []string{"countersign_receipts"}, skip: "the message already has the label"},
		"an unknown category":    {decision: wanting("x", decide.Want{Action: decide.Label}), skip: "unknown word for categories"},
		"an archive":             {decision: wanting("", decide.Want{Action: decide.Archive}), tool: plan.ToolArchive, args: seen + message + `}`, origin: plan.Header},
		"the state it was seen in": {decision: wanting("", decide.Want{Action: decide.Archive}), flags: []string{"b", "\\seen", "a"}, tool: plan.ToolArchive,
			args: `{"account":"ana","expected":{"flags":["\\Seen","a","b"],"folder":"INBOX"},` + message + `}`, origin: plan.Header},
		"an unknown flag": {decision: wanting("", decide.Want{Action: decide.Archive}), flags: []string{"a\x00"}, skip: "the value of mailbox/flags contains unprintable characters"},
		"a label and an archive": {decision: wanting(classify.Receipts, decide.Want{Action: decide.Label}, decide.Want{Action: decide.Archive}),
			tool: plan.ToolArchive, args: seen + `"labels":{"add":["receipts"]},` + message + `}`, origin: plan.Templated, parts: []plan.Part{{Action: decide.Archive}, {Action: decide.Label, Target: "receipts"}}},
		"both, which a person approves": {decision: wanting(classify.Receipts, decide.Want{Action: decide.Label, Confirm: true}, decide.Want{Action: decide.Archive, Confirm: true}),
			tool: plan.ToolArchive, args: seen + `"labels":{"add":["receipts"]},` + message + `}`, origin: plan.Templated, approval: envelope.ApprovalRequired,
			parts: []plan.Part{{Action: decide.Archive}, {Action: decide.Label, Target: "receipts"}}},
		"a label and a flag": {decision: wanting(classify.Receipts, decide.Want{Action: decide.Label}, decide.Want{Action: decide.Flag}),
			tool: plan.ToolLabel, args: seen + `"flags":{"add":["\\Flagged"]},"labels":{"add":["receipts"]},` + message + `}`, origin: plan.Enumerated,
			parts: []plan.Part{{Action: decide.Flag, Target: "\\Flagged"}, {Action: decide.Label, Target: "receipts"}}},
		"a flag":                  {decision: wanting("", decide.Want{Action: decide.Flag}), tool: plan.ToolFlag, args: seen + `"flags":{"add":["\\Flagged"]},` + message + `}`, origin: plan.Enumerated},
		"the flag is set":         {decision: wanting("", decide.Want{Action: decide.Flag}), flags: []string{"\\flagged"}, skip: "the message already has the flag"},
		"quarantine is confirmed": {decision: wanting("", decide.Want{Action: decide.Quarantine}), tool: plan.ToolMove, args: seen + `"folder":"Junk",` + message + `}`, origin: plan.Configured, approval: envelope.ApprovalRequired},
		"a draft is not written":  {decision: wanting("", decide.Want{Action: decide.Draft}), skip: "a draft is proposed when its text is written"},
		"the trash":               {decision: wanting("", decide.Want{Action: decide.Trash}), tool: plan.ToolTrash, args: seen + message + `}`, origin: plan.Header},
		"a snooze":                {decision: wanting("", decide.Want{Action: decide.Snooze}), tool: plan.ToolSnooze, args: seen + message + `,"until":"2026-12-01T06:00:00Z"}`, origin: plan.Calendar},
		"unsubscribing":           {decision: wanting("", decide.Want{Action: decide.Unsubscribe}), tool: plan.ToolUnsubscribe, args: `{"account":"ana",` + message + `}`, origin: plan.Header, approval: envelope.ApprovalRequired},
		"nothing is sent":         {decision: wanting("", decide.Want{Action: decide.Send}), skip: "triage does not propose the action send"},
		"an unknown action":       {decision: wanting("", decide.Want{Action: "x"}), skip: "triage does not propose the action x"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := target()
			on.At.Flags = tt.flags

			proposals, skips := plan.Plan(tt.decision, on, config())

			if tt.skip != "" {
				want := []plan.Skip{{Action: tt.decision.Wants[0].Action, Because: tt.skip}}
				if diff := cmp.Diff(want, skips); diff != "" || len(proposals) > 0 {
					t.Errorf("Plan() = %v, skips (-want +got):\n%s", proposals, diff)
				}
				return
			}
			if len(proposals) != 1 || len(skips) > 0 {
				t.Fatalf("Plan() = %v, %v, want one proposal", proposals, skips)
			}
			p := proposals[0]
			e, err := p.Envelope()
			if err != nil {
				t.Fatal(err)
			}
			if p.Tool != tt.tool || string(e.Args) != tt.args || e.Approval != tt.approval {
				t.Errorf("Plan() = %s %s approval %q, want %s %s approval %q", p.Tool, e.Args, e.Approval, tt.tool, tt.args, tt.approval)
			}
			if tt.parts != nil {
				if diff := cmp.Diff(tt.parts, p.Parts); diff != "" {
					t.Errorf("parts (-want +got):\n%s", diff)
				}
			}
			at := slices.IndexFunc(p.Fields, func(f plan.Field) bool {
				return !strings.HasPrefix(f.Pointer, "/message/") && !strings.HasPrefix(f.Pointer, "/expected/") && f.Pointer != "/account"
			})
			if at >= 0 && p.Fields[at].Value.Origin() != tt.origin {
				t.Errorf("%s is of the origin %s, want %s", p.Fields[at].Pointer, p.Fields[at].Value.Origin(), tt.origin)
			}
		})
	}
}

func TestPlanSkipsWhatCannotBeNamed(t *testing.T) {
	t.Parallel()
	wants := wanting(classify.Receipts, decide.Want{Action: decide.Label})

	for name, change := range map[string]func(*plan.Target, *plan.Config){
		"a folder with a NUL":  func(on *plan.Target, _ *plan.Config) { on.At.Folder = "a\x00" },
		"a key of other bytes": func(on *plan.Target, _ *plan.Config) { on.At.Key = "\xff" },
		"no account":           func(_ *plan.Target, c *plan.Config) { c.Account = "" },
	} {
		on, c := target(), config()
		change(&on, &c)

		if proposals, skips := plan.Plan(wants, on, c); len(proposals) > 0 || len(skips) != 1 {
			t.Errorf("%s: Plan() = %v, %v, want a skip", name, proposals, skips)
		}
	}

	on := target()
	on.Message.MessageID = "a\r\nb@c"
	proposals, skips := plan.Plan(wants, on, config())
	if len(skips) > 0 || slices.ContainsFunc(proposals[0].Fields, func(f plan.Field) bool { return f.Pointer == "/message/message_id" }) {
		t.Errorf("a Message-ID with control characters is named: %v, %v", proposals, skips)
	}
}

// TestApprovalOfOnePartDelaysNoOther combines a label that needs an approval
// with an archive that needs none.
func TestApprovalOfOnePartDelaysNoOther(t *testing.T) {
	t.Parallel()
	wants := wanting(classify.Receipts, decide.Want{Action: decide.Label, Confirm: true}, decide.Want{Action: decide.Archive})

	proposals, skips := plan.Plan(wants, target(), config())

	if len(proposals) != 1 || proposals[0].Confirm || len(proposals[0].Parts) != 1 || proposals[0].Action != decide.Archive {
		t.Errorf("Plan() = %v, want an archive that policy decides about", proposals)
	}
	if len(skips) != 1 || skips[0].Action != decide.Label || !strings.Contains(skips[0].Because, "needs an approval") {
		t.Errorf("Plan() leaves out %v, want the label", skips)
	}
}

func TestProposalsAreNotRepeated(t *testing.T) {
	t.Parallel()
	wants := wanting(classify.Receipts, decide.Want{Action: decide.Label}, decide.Want{Action: decide.Archive})
	all, _ := plan.Plan(wants, target(), config())
	again := target()
	again.Proposed = all[0].Parts

	if proposals, skips := plan.Plan(wants, again, config()); len(proposals) > 0 || len(skips) != 2 {
		t.Errorf("Plan() = %v, %v, want both left out", proposals, skips)
	}
	wants.Category = classify.Promotions
	proposals, _ := plan.Plan(wants, again, config())
	if len(proposals) != 1 || proposals[0].Action != decide.Label || proposals[0].ExternalID == all[0].ExternalID {
		t.Errorf("with another category, Plan() = %v, want its label alone", proposals)
	}
}

// TestExternalID checks the input of the name of a proposal: neither the run
// nor the location changes it.
func TestExternalID(t *testing.T) {
	t.Parallel()
	first := plan.ExternalID("ana", [32]byte{1}, decide.Label, "receipts")

	const want = "triage:ad958e749f6485b1d1969d105cb009b9e0adbddb2036c4da0c0e67e862b1d7fe"
	if first != want {
		t.Errorf("ExternalID() = %q, want %q: what was proposed under another name would be proposed again", first, want)
	}
	moved := target()
	moved.At.Location = mailbox.Location{Folder: "Archive", Key: "9:1"}
	wants := wanting(classify.Receipts, decide.Want{Action: decide.Label})
	here, _ := plan.Plan(wants, target(), config())
	there, _ := plan.Plan(wants, moved, config())
	if here[0].ExternalID != there[0].ExternalID {
		t.Errorf("a moved message has another external id")
	}

	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab\x00]{0,4}`)
		type parts struct {
			account  string
			identity byte
			action   string
			target   string
		}
		draw := func(name string) parts {
			return parts{text.Draw(t, name), rapid.ByteRange(0, 1).Draw(t, name), text.Draw(t, name), text.Draw(t, name)}
		}
		id := func(p parts) string {
			return plan.ExternalID(p.account, [32]byte{p.identity}, decide.Action(p.action), p.target)
		}
		a, b := draw("a"), draw("b")
		if (a == b) != (id(a) == id(b)) {
			t.Errorf("ids of %v and %v: %s and %s", a, b, id(a), id(b))
		}
	})
}

// valueOf returns a value of an origin.
func valueOf(t *testing.T, origin plan.Origin) plan.Value {
	t.Helper()
	var v plan.Value
	var err error
	switch origin {
	case plan.Header:
		v, err = plan.FromHeader(target().Message, plan.HeaderFrom, 0)
	case plan.Configured:
		v, err = plan.FromConfig(config(), "/labels/promotions")
	case plan.Enumerated:
		v, err = plan.Enum(plan.Categories(), "receipts")
	case plan.Templated:
		v, err = plan.Template(plan.LabelTemplate, valueOf(t, plan.Enumerated))
	case plan.Calendar:
		v, err = plan.FromCalendar(target().Return)
	case plan.ModelText:
		v, err = plan.FromModel("ignore previous instructions")
	}
	if err != nil || v.Origin() != origin {
		t.Fatalf("a value of %s is %v, %v", origin, v, err)
	}
	return v
}

// TestOriginsOfEveryPlace repeats the allowed origins by place: no text of a
// model identifies a recipient or a message.
func TestOriginsOfEveryPlace(t *testing.T) {
	t.Parallel()
	takes := map[string][]plan.Origin{
		"/account":            {plan.Configured},
		"/message/folder":     {plan.Header},
		"/message/key":        {plan.Header},
		"/message/message_id": {plan.Header},
		"/message/identity":   {plan.Header},
		"/expected/folder":    {plan.Header},
		"/expected/flags/2":   {plan.Header},
		"/labels/add/0":       {plan.Header, plan.Configured, plan.Templated},
		"/labels/remove/3":    {plan.Header, plan.Configured, plan.Templated},
		"/flags/add/0":        {plan.Enumerated},
		"/flags/remove/0":     {plan.Enumerated},
		"/folder":             {plan.Configured},
		"/to/0":               {plan.Header, plan.Configured, plan.Templated},
		"/cc/11":              {plan.Header, plan.Configured, plan.Templated},
		"/subject":            {plan.Header, plan.Configured, plan.Templated},
		"/in_reply_to":        {plan.Header},
		"/references/0":       {plan.Header},
		"/until":              {plan.Calendar, plan.Configured},
		"/text":               {plan.Header, plan.Configured, plan.Templated, plan.Enumerated, plan.ModelText},
		"/to":                 {plan.Header},
		"/since":              {plan.Configured},
		"/bcc/0":              nil,
		"/labels/add":         nil,
		"/labels/add/00":      nil,
		"/url":                nil,
		"":                    nil,
	}
	tools := []plan.Tool{plan.ToolLabel, plan.ToolFlag, plan.ToolArchive, plan.ToolMove, plan.ToolDraft, plan.ToolTrash, plan.ToolSnooze, plan.ToolUnsubscribe, plan.ToolAway, "mail.send"}
	patterns := map[string]bool{}
	for _, rule := range plan.Rules() {
		patterns[rule.Pattern] = true
	}
	if got, want := len(patterns), len(takes)-5; got != want {
		t.Errorf("there are %d rules, and %d places here", got, want)
	}

	for pointer, origins := range takes {
		for _, origin := range plan.Origins() {
			value := valueOf(t, origin)
			taken := slices.ContainsFunc(tools, func(tool plan.Tool) bool {
				return plan.Check(tool, []plan.Field{{Pointer: pointer, Value: value}}) == nil
			})
			if want := slices.Contains(origins, origin); taken != want {
				t.Errorf("%q takes %s: %v, want %v", pointer, origin, taken, want)
			}
		}
		for _, tool := range tools {
			if err := plan.Check(tool, []plan.Field{{Pointer: pointer}}); err == nil {
				t.Errorf("%s takes a value without origin at %q", tool, pointer)
			}
		}
	}
	account := plan.Field{Pointer: "/account", Value: valueOf(t, plan.Configured)}
	if args, err := (plan.Proposal{Tool: plan.ToolLabel, Fields: []plan.Field{account, account}}).Args(); err == nil {
		t.Errorf("a field is taken twice: %s", args)
	}
	if plan.Check("mail.send", []plan.Field{account}) == nil {
		t.Errorf("a tool is taken that triage does not have")
	}
}

// TestToolsBesideAMove plans a label with a move that sets none, an archive with the
// end of a subscription, and a move after a snooze.
func TestToolsBesideAMove(t *testing.T) {
	t.Parallel()
	label, archive, trash := decide.Want{Action: decide.Label}, decide.Want{Action: decide.Archive}, decide.Want{Action: decide.Trash}
	proposals, skips := plan.Plan(wanting(classify.Receipts, label, trash), target(), config())
	if len(proposals) != 1 || proposals[0].Tool != plan.ToolTrash || len(skips) != 1 || skips[0].Action != decide.Label {
		t.Errorf("Plan(label, trash) = %v, %v", proposals, skips)
	}

	unsubscribe := decide.Want{Action: decide.Unsubscribe}
	proposals, skips = plan.Plan(wanting(classify.Receipts, label, archive, unsubscribe), target(), config())
	if len(proposals) != 2 || len(skips) != 0 || proposals[0].Tool != plan.ToolArchive || proposals[1].Tool != plan.ToolUnsubscribe || proposals[0].Confirm || !proposals[1].Confirm {
		t.Errorf("Plan(label, archive, unsubscribe) = %v, %v", proposals, skips)
	}
	other := target()
	other.Message.Identity = [32]byte{9}
	again, _ := plan.Plan(wanting("", unsubscribe), other, config())
	if len(again) != 1 || again[0].ExternalID != proposals[1].ExternalID {
		t.Error("another message of the sender has another name for the end of the subscription")
	}
	other.Received = other.Received.AddDate(0, 1, 0)
	if again, _ = plan.Plan(wanting("", unsubscribe), other, config()); len(again) != 1 || again[0].ExternalID == proposals[1].ExternalID {
		t.Error("nobody is asked again a month later")
	}

	returned := target()
	returned.Proposed = []plan.Part{{Action: decide.Snooze, Target: "2026-11-01T06:00:00Z"}}
	for _, want := range []decide.Want{archive, trash} {
		if proposals, skips := plan.Plan(wanting("", want), returned, config()); len(proposals) != 0 || len(skips) != 1 {
			t.Errorf("a message that returned from a snooze: %v, %v", proposals, skips)
		}
	}
	never := target()
	never.Return = time.Time{}
	if proposals, _ := plan.Plan(wanting("", decide.Want{Action: decide.Snooze}), never, config()); len(proposals) != 0 {
		t.Errorf("a snooze without a time: %v", proposals)
	}
}

func TestActionLabelsAreRefused(t *testing.T) {
	t.Parallel()

	for _, label := range []string{"Countersign_do_add-contact", "countersign_DO_x", "do_add-contact"} {
		c := config()
		c.Labels[classify.Promotions] = label
		if c.Check() == nil {
			t.Errorf("Check() accepts the label %q", label)
		}
		if proposals, _ := plan.Plan(wanting(classify.Promotions, decide.Want{Action: decide.Label}), target(), c); len(proposals) > 0 {
			t.Errorf("the label %q is proposed", label)
		}
	}
}

func TestCheckConfig(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct {
		change func(*plan.Config)
		ok     bool
	}{
		"as it is":             {func(*plan.Config) {}, true},
		"no source":            {func(c *plan.Config) { c.Source = "" }, false},
		"no account":           {func(c *plan.Config) { c.Account = "" }, false},
		"a label with a space": {func(c *plan.Config) { c.Labels[classify.Receipts] = "a b" }, false},
		"a label like a flag":  {func(c *plan.Config) { c.Labels[classify.Receipts] = "\\Deleted" }, false},
	} {
		c := config()
		tt.change(&c)

		if err := c.Check(); (err == nil) != tt.ok {
			t.Errorf("%s: Check() = %v, want ok %v", name, err, tt.ok)
		}
	}
}

func TestTemplatesTakeNoText(t *testing.T) {
	t.Parallel()

	for _, origin := range plan.Origins() {
		_, err := plan.Template(plan.LabelTemplate, valueOf(t, origin))
		if want := origin == plan.Enumerated; (err == nil) != want {
			t.Errorf("a slot takes %s: %v, want %v", origin, err, want)
		}
	}
	if _, err := plan.Template(plan.LabelTemplate); err == nil {
		t.Errorf("a template takes too few slots")
	}
	if _, err := plan.Template("x"); err == nil {
		t.Errorf("there is a template x")
	}
}

func TestValuesOfHeaders(t *testing.T) {
	t.Parallel()
	m := &message.Message{
		From: []message.Address{{Addr: "a@b.example"}}, ReplyTo: []message.Address{{Addr: "r@b.example"}},
		To: []message.Address{{Addr: "x@y.example"}}, Cc: []message.Address{{Addr: "c@y.example"}, {Addr: "d@y.example"}},
		Subject: "Hi", MessageID: "id@b.example", References: []string{"r1@b.example"},
	}

	for name, want := range map[plan.HeaderName]string{
		plan.HeaderFrom: "a@b.example", plan.HeaderReplyTo: "r@b.example", plan.HeaderTo: "x@y.example", plan.HeaderCc: "c@y.example",
		plan.HeaderSubject: "Hi", plan.HeaderMessageID: "id@b.example", plan.HeaderReferences: "r1@b.example",
	} {
		got, err := plan.FromHeader(m, name, 0)
		if err != nil || got.Text() != want || got.Ref() != string(name)+"/0" {
			t.Errorf("FromHeader(%s) = %v, %v, want %s", name, got, err, want)
		}
		for _, at := range []int{-1, 2} {
			if got, err := plan.FromHeader(m, name, at); err == nil {
				t.Errorf("FromHeader(%s, %d) = %v, want an error", name, at, got)
			}
		}
	}
}

func TestRowsBuildArgs(t *testing.T) {
	t.Parallel()
	proposals, _ := plan.Plan(wanting(classify.Receipts, decide.Want{Action: decide.Label}), target(), config())

	rows, err := json.Marshal(proposals[0].Rows())
	if err != nil {
		t.Fatal(err)
	}

	id := hex.EncodeToString(append([]byte{1, 2, 3}, make([]byte, 29)...))
	want := `[{"pointer":"/account","value":"ana","origin":"config","ref":"/account"},` +
		`{"pointer":"/message/folder","value":"INBOX","origin":"header","ref":"mailbox/folder"},` +
		`{"pointer":"/message/key","value":"7:42","origin":"header","ref":"mailbox/key"},` +
		`{"pointer":"/message/identity","value":"` + id + `","origin":"header","ref":"mailbox/identity"},` +
		`{"pointer":"/message/message_id","value":"a@shop.example","origin":"header","ref":"Message-ID/0"},` +
		`{"pointer":"/expected/folder","value":"INBOX","origin":"header","ref":"mailbox/folder"},` +
		`{"pointer":"/expected/flags/0","value":"\\Seen","origin":"header","ref":"mailbox/flags"},` +
		`{"pointer":"/labels/add/0","value":"receipts","origin":"template","ref":"label"}]`
	if string(rows) != want {
		t.Errorf("rows are\n%s, want\n%s", rows, want)
	}
}
