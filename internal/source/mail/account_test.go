package mail_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
)

// TestErrorsOfTheMailbox compares the outcome of an error before a change with
// that of an error during a change.
func TestErrorsOfTheMailbox(t *testing.T) {
	t.Parallel()
	down := fmt.Errorf("hush: %w", mailboxtest.ErrDown)
	for _, test := range []struct {
		method string
		err    error
		kind   source.Kind
		code   string
		unsure bool
	}{
		{"Open", down, source.KindRetry, source.CodeUnreachable, false},
		{"Open", fmt.Errorf("hush: %w", mailbox.ErrDenied), source.KindRefused, source.CodeUnauthorized, false},
		{"Open", fmt.Errorf("hush: %w", safehttp.ErrForbidden), source.KindRefused, source.CodeRejected, false},
		{"Open", &mailbox.BusyError{Reason: "hush"}, source.KindRetry, source.CodeRateLimited, false},
		{"Find", down, source.KindRetry, source.CodeUnreachable, false},
		{"Find", mailbox.ErrInvalid, source.KindRefused, source.CodeInvalidArgs, false},
		{"Find", mailbox.ErrTooLarge, source.KindRefused, source.CodeOversized, false},
		{"Folders", down, source.KindRetry, source.CodeUnreachable, false},
		{"Change", down, source.KindRetry, source.CodeLost, true},
		{"Change", mailbox.ErrNoFolder, source.KindRefused, source.CodeNotFound, false},
		{"Change", mailbox.ErrUnsupported, source.KindRefused, source.CodeUnsupported, false},
		{"Change", mailbox.ErrDenied, source.KindRefused, source.CodeUnauthorized, false},
		{"Change", mailbox.ErrGone, source.KindRefused, source.CodeNotFound, false},
		{"Change", &mailbox.BusyError{Reason: "hush"}, source.KindRetry, source.CodeRateLimited, false},
	} {
		t.Run(test.method+" "+test.code, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			raw := mailOf("1@example.com", "hush body")
			args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw)}
			f.account.Fail(test.method, mailboxtest.Fault{Err: test.err})

			out := f.call(mail.ToolArchive, args)

			f.answer(out, test.kind, test.code)
			if out.Unsure != test.unsure || out.Message == "" || strings.Contains(out.Message, "hush") {
				t.Errorf("outcome has the message %q, unsure %t, want %t", out.Message, out.Unsure, test.unsure)
			}
			if test.kind == source.KindRetry {
				f.done(mail.ToolArchive, args)
			}
		})
	}
}

func TestAccountWithoutTheFolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	raw := mailOf("1@example.com", "hush body")
	args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw)}
	stored := f.done(mail.ToolDraft, draftArgs())
	for _, name := range []string{"Archive", "Trash"} {
		f.account.RemoveFolder(name)
	}

	archive := f.call(mail.ToolArchive, args)
	remove := f.call(mail.ToolDraftDelete, object{"account": "work", "message": stored["message"], "after": stored["after"]})
	f.account.RemoveFolder("Drafts")
	draft := f.call(mail.ToolDraft, draftArgs())

	for name, out := range map[string]source.Outcome{"folders.archive": archive, "folders.trash": remove, "folders.drafts": draft} {
		f.answer(out, source.KindRefused, source.CodeNotFound)
		if !strings.Contains(out.Message, name) {
			t.Errorf("the message is %q, want one that names %s", out.Message, name)
		}
	}
}

func TestFoldersAreConfigured(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *mail.Config) {
		work := cfg.Accounts["work"]
		work.Folders = map[mailbox.Use]string{mailbox.UseArchive: "Projects", mailbox.UseDrafts: "Nowhere"}
		cfg.Accounts["work"] = work
	})
	raw := mailOf("1@example.com", "hush body")
	args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw)}

	result := f.done(mail.ToolArchive, args)

	if got := stateOf(result, "after"); got != "Projects []" {
		t.Errorf("after = %s, want it in the configured folder", got)
	}
	f.answer(f.call(mail.ToolDraft, draftArgs()), source.KindRefused, source.CodeNotFound)
}

func TestCallsOfAnAccountAreSerialized(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if out := f.source.Execute(t.Context(), source.Call{Key: "key", Tool: mail.ToolState, Args: []byte(`{"account":"work","message":{"folder":"INBOX","key":"1","identity":"` + strings.Repeat("0", 64) + `"}}`)}); out.Code != source.CodeNotFound {
				t.Errorf("outcome = %s %q", out.Kind, out.Code)
			}
		})
	}
	all.Wait()

	if opened, open := f.account.Connections(); opened != 1 || open != 1 {
		t.Errorf("%d connections were opened and %d are open, want 1", opened, open)
	}
}

func TestLongWaitForOtherCallsIsNotAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		began := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		f.account.Fail("Append", mailboxtest.Fault{Before: func() { close(began); <-ctx.Done() }})
		var first sync.WaitGroup
		first.Go(func() { f.done(mail.ToolDraft, draftArgs()) })
		<-began

		soon, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		out := f.source.Execute(soon, source.Call{Key: "other", Tool: mail.ToolDraft, Effect: envelope.EffectOnce, Args: []byte(`{"account":"work","to":[],"subject":"","text":""}`)})
		var held sync.WaitGroup
		var deferred atomic.Int32
		for range 100 {
			held.Go(func() {
				all, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer stop()
				if f.source.Execute(all, source.Call{Key: "other", Tool: mail.ToolDraft, Args: []byte(`{"account":"work","to":[],"subject":"","text":""}`)}).Deferred {
					deferred.Add(1)
				}
			})
		}
		held.Wait()
		cancel()
		first.Wait()

		if deferred.Load() != 100 {
			t.Errorf("%d of 100 calls beyond the first are deferred, want all", deferred.Load())
		}
		if out.Kind != source.KindRetry || out.Code != source.CodeRateLimited || out.SourceFailed() || !out.Deferred {
			t.Errorf("outcome = %s %q (%s), want a retry that counts neither as an attempt nor as a failure of the source", out.Kind, out.Code, out.Message)
		}
	})
}

func TestIdleConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.done(mail.ToolDraft, draftArgs())
		time.Sleep(50 * time.Second)
		f.done(mail.ToolDraft, draftArgs())
		time.Sleep(50 * time.Second)
		_, used := f.account.Connections()
		time.Sleep(time.Minute)
		_, idle := f.account.Connections()

		f.done(mail.ToolDraft, draftArgs())

		if opened, _ := f.account.Connections(); used != 1 || idle != 0 || opened != 2 {
			t.Errorf("%d connections opened; open: %d while in use and %d after a minute, want 2, 1 and 0", opened, used, idle)
		}
	})
}

func TestBrokenConnectionIsReopened(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	raw := mailOf("1@example.com", "hush body")
	args := object{"account": "work", "message": ref(f.account.Deliver("INBOX", raw), "1@example.com", raw)}
	f.done(mail.ToolState, args)
	f.account.Fail("Find", mailboxtest.Fault{Err: mailboxtest.ErrDown})

	f.done(mail.ToolState, args)

	if opened, open := f.account.Connections(); opened != 2 || open != 1 {
		t.Errorf("%d connections were opened and %d are open, want 2 and 1", opened, open)
	}
}

func TestSourceNeedsAnAccount(t *testing.T) {
	t.Parallel()
	if _, err := mail.New(mail.Config{Name: "mailbox"}); err == nil || errors.Is(err, mailbox.ErrInvalid) {
		t.Errorf("New() = %v, want an error", err)
	}
}
