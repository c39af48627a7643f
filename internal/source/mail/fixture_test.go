package mail_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// owner is the address of the account "work".
const owner = "ada@example.org"

// fixture is a source with one account, "work".
type fixture struct {
	*testing.T
	account *mailboxtest.Memory
	source  *mail.Source
	calls   int
}

func newFixture(t *testing.T, change ...func(*mail.Config)) *fixture {
	t.Helper()
	f := &fixture{T: t, account: mailboxtest.NewMemory(identify)}
	cfg := mail.Config{Name: "mailbox", Accounts: map[string]mail.Account{"work": {Open: f.account.Open, From: owner}}}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	if f.source, err = mail.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.source.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
		if opened, open := f.account.Connections(); open != 0 {
			t.Errorf("%d of %d connections are still open", open, opened)
		}
	})
	return f
}

func identify(raw []byte) []byte {
	digest := message.Identify(raw)
	return digest[:]
}

// mailOf returns the bytes of a message.
func mailOf(id, body string) []byte {
	return fmt.Appendf(nil, "From: bob@example.com\r\nTo: %s\r\nSubject: hush subject\r\nMessage-ID: <%s>\r\n\r\n%s\r\n", owner, id, body)
}

type object = map[string]any

// ref returns the reference of a message in arguments.
func ref(at mailbox.State, id string, raw []byte) object {
	return object{"folder": at.Folder, "key": at.Key, "message_id": id, "identity": hex.EncodeToString(identify(raw))}
}

// call calls a tool with arguments, under a new key.
func (f *fixture) call(tool string, args object) source.Outcome {
	f.Helper()
	f.calls++
	return f.attempt(1, fmt.Sprintf("key %d", f.calls), tool, args)
}

// attempt makes an attempt of a call after n-1 lost attempts.
func (f *fixture) attempt(n int, key, tool string, args object) source.Outcome {
	f.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		f.Fatal(err)
	}
	effect := envelope.EffectIdempotent
	switch tool {
	case mail.ToolDraft:
		effect = envelope.EffectKeyed
	case mail.ToolUnsubscribe, mail.ToolSend, mail.ToolRSVP, mail.ToolAway:
		effect = envelope.EffectOnce
	}
	out := f.source.Execute(f.Context(), source.Call{Key: key, Tool: tool, Args: raw, Effect: effect, Attempt: n, Unsure: n > 1})
	if out.Result != nil {
		f.fits(tool, out.Result)
	}
	return out
}

// fits checks a result against the tool's output schema.
func (f *fixture) fits(tool string, result json.RawMessage) {
	f.Helper()
	tools, err := f.source.List(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	i := slices.IndexFunc(tools, func(t source.Tool) bool { return t.Name == tool })
	output, err := schema.Compile(tools[i].OutputSchema)
	if err != nil {
		f.Fatal(err)
	}
	if wrong, err := output.CheckObject(f.Context(), schema.NewBudget(0), result); err != nil || len(wrong) > 0 {
		f.Errorf("%s answers %s, which does not fit its output schema: %v, %v", tool, result, wrong, err)
	}
}

// done calls a tool, which must succeed, and returns its result.
func (f *fixture) done(tool string, args object) object {
	f.Helper()
	return f.answer(f.call(tool, args), source.KindDone, "")
}

// answer compares the outcome of a call and returns its result.
func (f *fixture) answer(out source.Outcome, kind source.Kind, code string) object {
	f.Helper()
	if strings.Contains(out.Message+string(out.Result), "hush") {
		f.Errorf("outcome shows what a mail says: %s %s", out.Message, out.Result)
	}
	if out.Kind != kind || out.Code != code {
		f.Fatalf("outcome = %s %q (%s), want %s %q", out.Kind, out.Code, out.Message, kind, code)
	}
	var result object
	if len(out.Result) > 0 {
		if err := json.Unmarshal(out.Result, &result); err != nil {
			f.Fatal(err)
		}
	}
	return result
}

// stateOf formats a state in a result: "INBOX [a b]".
func stateOf(result object, name string) string {
	state, ok := result[name].(object)
	if !ok {
		return "none"
	}
	return fmt.Sprint(state["folder"], " ", state["flags"])
}

// locations formats the states of the messages in folders: "INBOX [a b]".
func (f *fixture) locations(folders ...string) (all []string) {
	for _, folder := range folders {
		for _, m := range f.account.Messages(folder) {
			all = append(all, fmt.Sprint(m.Folder, " ", m.Flags))
		}
	}
	return all
}

// reversal returns the arguments of the reversal of a call, as declared by its
// tool.
func (f *fixture) reversal(args, result object) object {
	f.Helper()
	return object{"account": args["account"], "message": args["message"], "before": result["before"], "after": result["after"]}
}
