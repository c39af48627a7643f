package mail_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
)

// TestLostAnswer cuts the connection after the server has executed a command:
// the call is retried, detects its own effect, and has the same result as the
// first attempt.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for command, tool := range map[string]string{"MOVE": mail.ToolArchive, "STORE": mail.ToolLabel, "APPEND": mail.ToolDraft} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server, address := newMemoryServer(t)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			cut := &mailboxtest.Cutter{To: address, Commands: []string{command}}
			var running sync.WaitGroup
			running.Go(func() { cut.Serve(listener) })
			through := overIMAP(listener.Addr().String(), "ada", memoryPassword)
			f := newFixture(t, func(cfg *mail.Config) {
				cfg.Accounts = map[string]mail.Account{"work": {From: owner, Open: func(context.Context) (mailbox.Writer, error) { return through.writer() }}}
			})
			t.Cleanup(func() { // before the source is closed, whose connections have ended by then
				_ = listener.Close()
				_ = f.source.Close()
				running.Wait()
			})
			args := draftArgs()
			if tool != mail.ToolDraft {
				args = server.message(t)
				args["expected"] = object{"folder": "INBOX", "flags": []string{`\Seen`}}
			}
			if tool == mail.ToolLabel {
				args["labels"] = object{"add": []string{"receipts"}}
			}
			cut.Arm()

			lost := f.attempt(1, "key", tool, args)
			result := f.answer(f.attempt(2, "key", tool, args), source.KindDone, "")

			if lost.Kind != source.KindRetry || lost.Code != source.CodeLost || !lost.Unsure {
				t.Errorf("the first attempt = %s %q, unsure %t; want one that is lost", lost.Kind, lost.Code, lost.Unsure)
			}
			if tool == mail.ToolDraft {
				return
			}
			if got := stateOf(result, "before"); got != `INBOX [\Seen]` {
				t.Errorf("the second attempt found %s, want what was before the first", got)
			}
			f.done(mail.ToolRestore, f.reversal(args, result))
			all, _ := server.look(t)
			if diff := cmp.Diff([]string{"INBOX", `\Seen`}, append([]string{all[0].Folder}, all[0].Flags...)); diff != "" || len(all) != 1 {
				t.Errorf("restored (-want +got):\n%s", diff)
			}
		})
	}
}
