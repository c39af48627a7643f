package mail

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/source"
)

// restoreArgs are the arguments of the tools that revert a call: the states of a
// message before and after it.
type restoreArgs struct {
	Account       string
	Message       reference
	Before, After mailbox.State
}

func (s *Source) restore(ctx context.Context, call source.Call, in restoreArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation { return on.restore(ctx, call, in) })
}

// restore changes a message from its state after a call to its state before.
func (s *session) restore(ctx context.Context, call source.Call, in restoreArgs) source.Observation {
	change := in.After.ChangeTo(in.Before)
	kept := []string{mailbox.FlagDeleted, mailbox.FlagDraft}
	if change.Check() != nil || slices.ContainsFunc(kept, func(f string) bool { return mailbox.HasFlag(change.Add, f) || mailbox.HasFlag(change.Remove, f) }) {
		return s.source.refuse(source.CodeInvalidArgs, "the states differ in a flag that is not valid, or that no call sets")
	}
	if change.TagsAction() {
		return s.source.tagged()
	}
	now, err := s.find(ctx, in.Message.at(in.After.Location))
	if err != nil {
		return s.failed(ctx, err, false)
	}
	toDo, touched := s.compare(now, in, change)
	switch {
	case touched != "":
		return s.source.refuse(source.CodeChanged, "someone has changed the message since; its "+touched+" differs from what the call left")
	case toDo == none:
		return changed(in.Message, now, now).AlreadyDone()
	case toDo == some && !call.Unsure:
		return s.source.refuse(source.CodeChanged, "someone has changed the message since; part of the call's effect is already reverted")
	}
	return s.apply(ctx, in.Message, now, change)
}

// amount is the part of a call that is still to be reverted.
type amount int

const (
	none amount = iota
	some        // after an interrupted attempt
	all
)

// compare compares a message with its state after a call, and returns the part
// of the reverting change that is still to be made. touched is the kind of a
// later change by someone else, or "".
//
// Labels with the account's prefix are set only by this source. Those that the
// call did not change are ignored, and a call that changed only such labels is
// reverted in whichever folder the message is.
func (s *session) compare(now mailbox.State, in restoreArgs, change mailbox.Change) (_ amount, touched string) {
	changed := slices.Concat(change.Add, change.Remove)
	own := func(flag string) bool { return s.LabelPrefix != "" && strings.HasPrefix(flag, s.LabelPrefix) }
	ownAlone := len(changed) > 0 && change.MoveTo == "" && !slices.ContainsFunc(changed, func(f string) bool { return !own(f) })
	var pending, reverted int
	if change.MoveTo != "" && now.Folder == in.Before.Folder {
		reverted++
	} else if now.Folder == in.After.Folder && change.MoveTo != "" {
		pending++
	} else if now.Folder != in.After.Folder && !ownAlone {
		return none, "folder"
	}
	for _, flag := range mailbox.Flags(slices.Concat(now.Flags, in.After.Flags, changed)...) {
		is := mailbox.HasFlag(now.Flags, flag)
		switch {
		case mailbox.HasFlag(changed, flag) && is == mailbox.HasFlag(in.After.Flags, flag):
			pending++
		case mailbox.HasFlag(changed, flag):
			reverted++
		case is != mailbox.HasFlag(in.After.Flags, flag) && !own(flag) && !ownAlone:
			return none, "set of flags"
		}
	}
	switch {
	case pending == 0:
		return none, ""
	case reverted > 0:
		return some, ""
	}
	return all, ""
}

// apply changes a message, whose state must still be now.
func (s *session) apply(ctx context.Context, of reference, now mailbox.State, change mailbox.Change) source.Observation {
	after, err := s.writer.Change(ctx, now, change)
	if errors.Is(err, mailbox.ErrChanged) {
		return s.source.refuse(source.CodeChanged, "someone is changing the message")
	}
	if err != nil {
		return s.failed(ctx, err, true)
	}
	return changed(of, now, after)
}

// deleteDraft moves a draft to the trash, if it is unchanged.
func (s *Source) deleteDraft(ctx context.Context, _ source.Call, in restoreArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		trash, err := on.folder(ctx, mailbox.UseTrash)
		if errors.Is(err, mailbox.ErrNoFolder) {
			return s.noTrash()
		}
		if err != nil {
			return on.failed(ctx, err, false)
		}
		now, err := on.find(ctx, in.Message.at(in.After.Location))
		switch {
		case err != nil:
			return on.failed(ctx, err, false)
		case now.Folder == trash:
			return changed(in.Message, now, now).AlreadyDone()
		case !mailbox.HasFlag(now.Flags, mailbox.FlagDraft):
			return s.refuse(source.CodeRejected, "the message is not a draft")
		case !now.Equal(in.After):
			return s.refuse(source.CodeChanged, "someone has changed the draft since; its "+difference(now, in.After)+" differs from what was stored")
		}
		return on.apply(ctx, in.Message, now, mailbox.Change{MoveTo: trash})
	})
}
