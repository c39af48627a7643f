package mail

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/source"
)

// trash moves a message to the trash. Emptying it is the owner's.
func (s *Source) trash(ctx context.Context, call source.Call, in changeArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		return on.moveToUse(ctx, call, in, s.noTrash(), mailbox.UseTrash)
	})
}

// noTrash returns the observation of a call that needs the trash of an account
// without one.
func (s *Source) noTrash() source.Observation {
	return s.refuse(source.CodeNotFound, "the account has no trash; name a folder as folders.trash in the source's configuration")
}

// snoozeArgs are the arguments of ToolSnooze.
type snoozeArgs struct {
	changeArgs
	Until time.Time
}

// returnArgs are the arguments of ToolReturn: the states of a message before and
// after ToolSnooze.
type returnArgs struct {
	Account string         `json:"account"`
	Message reference      `json:"message"`
	Before  *mailbox.State `json:"before"`
	After   *mailbox.State `json:"after"`
}

// maxSnooze bounds the time that a message is snoozed.
const maxSnooze = 366 * 24 * time.Hour

// snooze moves a message to the folder of snoozed messages. A message that is
// already there returns at the time of the call that moved it.
func (s *Source) snooze(ctx context.Context, call source.Call, in snoozeArgs) source.Observation {
	if wait := time.Until(in.Until); !call.Unsure && (wait <= 0 || wait > maxSnooze) {
		return s.refuse(source.CodeInvalidArgs, "the time of the return is in the past, or more than a year away")
	}
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		absent := s.refuse(source.CodeNotFound, "the account has no folder for snoozed messages; create the folder Snoozed, or name one as folders.snoozed in the source's configuration")
		o := on.moveToUse(ctx, call, in.changeArgs, absent, mailbox.UseSnoozed)
		if !o.Answered || o.Conflict {
			return o
		}
		var moved result
		err := json.Unmarshal(o.Result, &moved)
		args, failed := json.Marshal(returnArgs{Account: in.Account, Message: moved.Message, Before: moved.Before, After: moved.After})
		if err = errors.Join(err, failed); err != nil {
			return source.Observation{Written: true, Code: source.CodeMalformed}
		}
		o.Return = &source.Return{Tool: ToolReturn, Args: args, At: in.Until}
		return o
	})
}

// comeBack moves a snoozed message to the folder that it came from, with the
// flags that it has now. A message that its owner has moved or deleted stays.
func (s *Source) comeBack(ctx context.Context, _ source.Call, in returnArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		now, err := on.find(ctx, in.Message.at(in.After.Location))
		switch {
		case errors.Is(err, mailbox.ErrGone):
			o := source.Observation{Written: true, Answered: true}.AlreadyDone()
			o.Message = s.name + ": the owner has deleted the snoozed message"
			return o
		case err != nil:
			return on.failed(ctx, err, false)
		case now.Folder != in.After.Folder:
			return changed(in.Message, now, now).AlreadyDone()
		}
		return on.apply(ctx, in.Message, now, mailbox.Change{MoveTo: in.Before.Folder})
	})
}
