package mail

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/source"
)

// reference identifies a message.
type reference struct {
	mailbox.Location
	MessageID string `json:"message_id"`
	Identity  string `json:"identity"`
}

// at returns the reference of the same message at a location.
func (r reference) at(l mailbox.Location) reference {
	r.Location = l
	return r
}

// find returns the state of the referenced message.
func (s *session) find(ctx context.Context, r reference) (mailbox.State, error) {
	identity, err := hex.DecodeString(r.Identity)
	if err != nil {
		return mailbox.State{}, mailbox.ErrInvalid
	}
	return s.writer.Find(ctx, r.Location, r.MessageID, identity)
}

// expectation is the state on which the decision to call was based.
type expectation struct {
	Folder string   `json:"folder"`
	Flags  []string `json:"flags"`
}

// set holds the elements to add and to remove.
type set struct {
	Add, Remove []string
}

// changeArgs are the arguments of the tools that change a message.
type changeArgs struct {
	Account  string
	Message  reference
	Labels   set
	Flags    set
	Folder   string
	Expected *expectation
}

// result is the result of a tool.
type result struct {
	Before  *mailbox.State `json:"before,omitempty"`
	After   *mailbox.State `json:"after,omitempty"`
	State   *mailbox.State `json:"state,omitempty"`
	Message reference      `json:"message"`
	// Reversal reports whether a reversal would restore the message: possible, done
	// or refused, because of Differs.
	Reversal string `json:"reversal,omitempty"`
	Differs  string `json:"differs,omitempty"`
}

// answer returns the observation of a successful call.
func answer(r result) source.Observation {
	for _, state := range []*mailbox.State{r.Before, r.After, r.State} {
		if state != nil {
			state.Flags = mailbox.Flags(state.Flags...)
		}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return source.Observation{Written: true, Code: source.CodeMalformed}
	}
	return source.Observation{Written: true, Answered: true, Result: raw}
}

// changed returns the observation of a call that changed a message from one
// state to another.
func changed(of reference, before, after mailbox.State) source.Observation {
	return answer(result{Before: &before, After: &after, Message: of.at(after.Location)})
}

// stateArgs are the arguments of message.state: a message, and for a reversal the
// states before and after the call; of a draft there is none before.
type stateArgs struct {
	Account       string
	Message       reference
	Before, After *mailbox.State
}

func (s *Source) state(ctx context.Context, _ source.Call, in stateArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		of := in.Message
		if in.After != nil {
			of = of.at(in.After.Location)
		}
		now, err := on.find(ctx, of)
		if err != nil {
			return on.failed(ctx, err, false)
		}
		r := result{State: &now, Message: in.Message.at(now.Location)}
		if in.After != nil {
			r.Reversal, r.Differs = on.reversal(now, in)
		}
		return answer(r)
	})
}

// reversal returns whether a reversal would restore a message that is in a state:
// possible, done or refused, because of what differs.
func (s *session) reversal(now mailbox.State, in stateArgs) (outcome, differs string) {
	const possible, done, refused = "possible", "done", "refused"
	if in.Before == nil {
		if now.Equal(*in.After) {
			return possible, ""
		}
		return refused, difference(now, *in.After)
	}
	args := restoreArgs{Account: in.Account, Message: in.Message, Before: *in.Before, After: *in.After}
	switch toDo, touched := s.compare(now, args, args.After.ChangeTo(args.Before)); {
	case touched != "":
		return refused, touched
	case toDo == none:
		return done, ""
	case toDo == some:
		return refused, "set of changes"
	}
	return possible, ""
}

func (s *Source) label(ctx context.Context, call source.Call, in changeArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		want := on.labels(in)
		want.Add, want.Remove = append(want.Add, in.Flags.Add...), append(want.Remove, in.Flags.Remove...)
		return on.change(ctx, call, in, want)
	})
}

// labels returns the change of labels in the arguments.
func (a *account) labels(in changeArgs) mailbox.Change {
	prefixed := func(labels []string) []string {
		all := make([]string, len(labels))
		for i, label := range labels {
			all[i] = a.LabelPrefix + label
		}
		return all
	}
	return mailbox.Change{Add: prefixed(in.Labels.Add), Remove: prefixed(in.Labels.Remove)}
}

func (s *Source) flag(ctx context.Context, call source.Call, in changeArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		return on.change(ctx, call, in, mailbox.Change{Add: in.Flags.Add, Remove: in.Flags.Remove})
	})
}

func (s *Source) archive(ctx context.Context, call source.Call, in changeArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		absent := s.refuse(source.CodeNotFound, "the account has no folder for archived messages; name one as folders.archive in the source's configuration")
		return on.moveToUse(ctx, call, in, absent, mailbox.UseArchive, mailbox.UseAll)
	})
}

// moveToUse moves a message to the first folder of the account for one of the
// uses. absent is the observation without one.
func (s *session) moveToUse(ctx context.Context, call source.Call, in changeArgs, absent source.Observation, uses ...mailbox.Use) source.Observation {
	folder, err := s.folder(ctx, uses...)
	if errors.Is(err, mailbox.ErrNoFolder) {
		return absent
	}
	if err != nil {
		return s.failed(ctx, err, false)
	}
	in.Folder = folder
	return s.moveTo(ctx, call, in)
}

func (s *Source) move(ctx context.Context, call source.Call, in changeArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		if name, special := strings.CutPrefix(in.Folder, `\`); special {
			folder, err := on.folder(ctx, mailbox.Use(strings.ToLower(name)))
			if name == "" { // which other folders have
				err = mailbox.ErrNoFolder
			}
			if err != nil {
				return on.failed(ctx, err, false)
			}
			in.Folder = folder
		}
		return on.moveTo(ctx, call, in)
	})
}

// moveTo moves a message to a folder, together with the change of labels in the
// arguments.
func (s *session) moveTo(ctx context.Context, call source.Call, in changeArgs) source.Observation {
	want := s.labels(in)
	want.MoveTo = in.Folder
	return s.change(ctx, call, in, want)
}

// maxRaces is the number of retries after a concurrent change of the message.
const maxRaces = 3

// change changes a message.
func (s *session) change(ctx context.Context, call source.Call, in changeArgs, want mailbox.Change) source.Observation {
	if want.Check() != nil {
		return s.source.refuse(source.CodeInvalidArgs, "a label or a flag is not valid, or is both added and removed")
	}
	if want.TagsAction() {
		return s.source.tagged()
	}
	for race := 1; ; race++ {
		now, err := s.find(ctx, in.Message)
		if err != nil {
			return s.failed(ctx, err, false)
		}
		before, decided := s.decide(call, in, want, now)
		if decided != nil {
			return *decided
		}
		after, err := s.writer.Change(ctx, now, now.ChangeTo(made(want, now)))
		if errors.Is(err, mailbox.ErrChanged) && race < maxRaces {
			continue
		}
		if err != nil {
			return s.failed(ctx, err, true)
		}
		return changed(in.Message, before, after)
	}
}

// decide compares a change with the current state. It returns the state before
// the change, or the observation of a call that needs no change.
func (s *session) decide(call source.Call, in changeArgs, want mailbox.Change, now mailbox.State) (before mailbox.State, _ *source.Observation) {
	expected := in.expects(call, want, now)
	done := now.Equal(made(want, now))
	switch {
	case done && call.Unsure && !now.Equal(expected) && now.Equal(made(want, expected)):
		// An earlier attempt made the change, and its answer was lost.
		return expected, new(changed(in.Message, expected, now))
	case done:
		return now, new(changed(in.Message, now, now).AlreadyDone())
	case now.Equal(expected):
	case call.Unsure && between(now, expected, made(want, expected)):
		return expected, nil
	default:
		return now, new(s.source.refuse(source.CodeChanged, "the message is not in the state that the call expects; its "+difference(now, expected)+" differs"))
	}
	if want.MoveTo != "" && now.Folder != in.Message.Folder {
		return now, new(s.source.refuse(source.CodeChanged, "the message has been moved from the folder in the call"))
	}
	return now, nil
}

// expects returns the state in which a call expects a message. If the call names
// one, flags that mail programs set automatically and the call does not change
// have their current value, since reading a message is not a change. If an
// earlier attempt may only have moved the message, it is the named folder.
// Otherwise it is the current state.
func (in changeArgs) expects(call source.Call, want mailbox.Change, now mailbox.State) mailbox.State {
	seen := mailbox.State{Location: in.Message.Location, Flags: now.Flags}
	switch {
	case in.Expected != nil:
		changed := slices.Concat(want.Add, want.Remove)
		besides := func(flag string) bool { return mailbox.SetByPrograms(flag) && !mailbox.HasFlag(changed, flag) }
		seen.Folder = in.Expected.Folder
		seen.Flags = slices.DeleteFunc(slices.Clone(in.Expected.Flags), besides)
		for _, flag := range now.Flags {
			if besides(flag) {
				seen.Flags = append(seen.Flags, flag)
			}
		}
		return seen
	case call.Unsure && now.Folder == want.MoveTo && len(want.Add)+len(want.Remove) == 0:
		return seen
	}
	return now
}

// made returns the state after a change, at the key of before.
func made(change mailbox.Change, before mailbox.State) mailbox.State {
	after := mailbox.State{Location: before.Location, Flags: change.Apply(before.Flags)}
	if change.MoveTo != "" {
		after.Folder = change.MoveTo
	}
	return after
}

// between reports whether a state is an intermediate one of an interrupted
// change from one state to another.
func between(now, from, to mailbox.State) bool {
	if now.Folder != from.Folder && now.Folder != to.Folder {
		return false
	}
	differs := func(flag string) bool { return mailbox.HasFlag(from.Flags, flag) != mailbox.HasFlag(to.Flags, flag) }
	return !slices.ContainsFunc(slices.Concat(now.Flags, from.Flags), func(flag string) bool {
		return mailbox.HasFlag(now.Flags, flag) != mailbox.HasFlag(from.Flags, flag) && !differs(flag)
	})
}

// difference names the kind of difference between two states.
func difference(a, b mailbox.State) string {
	if a.Folder != b.Folder {
		return "folder"
	}
	return "set of flags"
}
