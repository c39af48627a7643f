package mail_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/source"
)

// faulty makes the mailbox fail as the text of a draft requests.
type faulty struct {
	source.Source
	account *mailboxtest.Memory
}

// Execute implements source.Source.
func (f faulty) Execute(ctx context.Context, call source.Call) source.Outcome {
	var args struct{ Text string }
	if json.Unmarshal(call.Args, &args) == nil {
		switch args.Text {
		case "hang":
			f.account.Fail("Append", mailboxtest.Fault{})
		case "lose":
			f.account.Fail("Append", mailboxtest.Fault{Err: mailboxtest.ErrDown, After: true})
		case "limit":
			f.account.Fail("Append", mailboxtest.Fault{Err: &mailbox.BusyError{Reason: "too many commands", After: 7 * time.Second}})
		}
	}
	return f.Source.Execute(ctx, call)
}
