package imap

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// Change stores the flags and then moves the message. With CONDSTORE, the flags
// are stored only if nobody else changed them since. Everything that can be
// refused is checked before either.
func (w *Writer) Change(ctx context.Context, expected mailbox.State, change mailbox.Change) (mailbox.State, error) {
	if err := change.Check(); err != nil {
		return mailbox.State{}, err
	}
	if change.MoveTo == expected.Folder {
		change.MoveTo = ""
	}
	var step *step
	err := w.work.run(ctx, func(conn *connection) (err error) {
		step, err = prepare(ctx, conn, expected, change)
		return err
	})
	if err != nil {
		return mailbox.State{}, err
	}
	// Nothing is retried from here on: after a failed connection the outcome is
	// unknown.
	state, err := step.run(ctx)
	if errors.Is(err, errConnection) || ctx.Err() != nil {
		w.work.close()
	}
	return state, err
}

// step is a change of one message in the open folder.
type step struct {
	*connection
	state  mailbox.State
	uid    imap.UID
	modSeq uint64
	change mailbox.Change
}

// prepare opens the folder and checks that the message has the expected state
// and that the server supports the whole change.
func prepare(ctx context.Context, conn *connection, expected mailbox.State, change mailbox.Change) (*step, error) {
	validity, uid, err := splitKey(expected.Key)
	if err != nil {
		return nil, err
	}
	if err := conn.checkTarget(ctx, change.MoveTo); err != nil {
		return nil, err
	}
	data, err := conn.open(ctx, expected.Folder, "SELECT", &imap.SelectOptions{CondStore: conn.caps.Has(imap.CapCondStore)})
	if errors.Is(err, mailbox.ErrNoFolder) || err == nil && data.UIDValidity != validity {
		return nil, mailbox.ErrGone
	}
	if err != nil {
		return nil, err
	}
	s := &step{connection: conn, state: expected, uid: uid, change: change}
	current, err := s.current(ctx, data.HighestModSeq > 0)
	if err != nil {
		return nil, err
	}
	if !current.Equal(expected) {
		return nil, mailbox.ErrChanged
	}
	s.state.Flags = current.Flags
	return s, conn.checkFlags(data, slices.Concat(change.Add, change.Remove))
}

// checkTarget checks that moving to a folder cannot delete other messages. A
// message that is copied and deleted needs UID EXPUNGE: a bare EXPUNGE would
// delete other messages too.
func (conn *connection) checkTarget(ctx context.Context, folder string) error {
	if folder == "" {
		return nil
	}
	if !conn.caps.Has(imap.CapUIDPlus) {
		return conn.unsupported("UIDPLUS, so a message cannot be moved safely")
	}
	_, err := conn.examine(ctx, folder)
	return err
}

func (conn *connection) checkFlags(data *imap.SelectData, flags []string) error {
	if data.PermanentFlags == nil || slices.Contains(data.PermanentFlags, imap.FlagWildcard) {
		return nil
	}
	var permanent []string
	for _, flag := range data.PermanentFlags {
		permanent = append(permanent, string(flag))
	}
	for _, flag := range flags {
		if !mailbox.HasFlag(permanent, flag) {
			return fmt.Errorf("IMAP server %s does not keep the flag %q in this folder: use a folder in place of a label: %w",
				conn.config.Address, flag, mailbox.ErrUnsupported)
		}
	}
	return nil
}

// current returns the current state of the message.
func (s *step) current(ctx context.Context, modSeq bool) (mailbox.State, error) {
	state, found := mailbox.State{Location: s.state.Location}, false
	options := &imap.FetchOptions{UID: true, Flags: true, ModSeq: modSeq}
	err := s.fetch(ctx, imap.UIDSetNum(s.uid), options, func(m *fetched) {
		state.Flags, found, s.modSeq = m.flags, m.flagged, m.modSeq
	})
	if err == nil && !found {
		err = mailbox.ErrGone
	}
	return state, err
}

func (s *step) run(ctx context.Context) (mailbox.State, error) {
	s.begun = true
	defer func() { s.begun = false }()
	before := s.state
	if err := s.store(ctx, s.change); err != nil || s.change.MoveTo == "" {
		return s.state, err
	}
	err := s.move(ctx)
	if err != nil && !errors.Is(err, errConnection) && ctx.Err() == nil {
		// The server refused the move: restore the flags.
		if undone := s.store(ctx, s.state.ChangeTo(before)); undone != nil {
			err = s.halfDone("the message has its new flags and was not moved", errors.Join(err, undone))
		}
	}
	if err != nil {
		return mailbox.State{}, err
	}
	// The target folder may keep fewer flags. Even if they cannot be read, the
	// message has moved.
	if _, err := s.examine(ctx, s.state.Folder); err == nil {
		if now, err := s.current(ctx, false); err == nil {
			s.state = now
		}
	}
	return s.state, nil
}

// store changes the flags and reads them back: a server answers OK to a STORE
// whose condition failed.
func (s *step) store(ctx context.Context, change mailbox.Change) error {
	want := mailbox.State{Location: s.state.Location, Flags: change.Apply(s.state.Flags)}
	if want.Equal(s.state) {
		return nil
	}
	for _, flags := range s.stores(change, want.Flags) {
		var options *imap.StoreOptions
		if s.modSeq > 0 {
			options = &imap.StoreOptions{UnchangedSince: s.modSeq}
		}
		err := s.do(ctx, "STORE", func() error {
			return s.client.Store(imap.UIDSetNum(s.uid), flags, options).Close()
		})
		if err != nil {
			return err
		}
	}
	now, err := s.current(ctx, s.modSeq > 0)
	if err != nil {
		return err
	}
	// Another client may have changed other flags in the meantime.
	if done := (mailbox.State{Location: now.Location, Flags: change.Apply(now.Flags)}); !done.Equal(now) {
		return mailbox.ErrChanged
	}
	s.state = now
	return nil
}

// stores returns the STORE commands of a change. With a condition it is one
// command, which sets all flags; without, flags that others set in the meantime
// are kept.
func (s *step) stores(change mailbox.Change, want []string) []*imap.StoreFlags {
	if s.modSeq > 0 {
		return []*imap.StoreFlags{storeFlags(imap.StoreFlagsSet, want)}
	}
	var commands []*imap.StoreFlags
	if len(change.Add) > 0 {
		commands = append(commands, storeFlags(imap.StoreFlagsAdd, change.Add))
	}
	if len(change.Remove) > 0 {
		commands = append(commands, storeFlags(imap.StoreFlagsDel, change.Remove))
	}
	return commands
}

func storeFlags(op imap.StoreFlagsOp, flags []string) *imap.StoreFlags {
	command := &imap.StoreFlags{Op: op, Silent: true}
	for _, flag := range mailbox.Flags(flags...) {
		command.Flags = append(command.Flags, imap.Flag(flag))
	}
	return command
}

// move moves the message and takes its new location from COPYUID.
func (s *step) move(ctx context.Context) error {
	set := imap.UIDSetNum(s.uid)
	var validity uint32
	var to imap.NumSet
	err := s.do(ctx, "MOVE", func() error {
		if s.caps.Has(imap.CapMove) {
			data, err := s.client.Move(set, s.change.MoveTo).Wait()
			if err == nil {
				validity, to = data.UIDValidity, data.DestUIDs
			}
			return err
		}
		data, err := s.client.Copy(set, s.change.MoveTo).Wait()
		validity, to = data.UIDValidity, data.DestUIDs
		return err
	})
	if err != nil {
		return err
	}
	uids, _ := to.(imap.UIDSet)
	if validity == 0 || count(uids) != 1 {
		return mailbox.ErrGone // already gone
	}
	if !s.caps.Has(imap.CapMove) {
		if err := s.expunge(ctx, set); err != nil {
			return s.halfDone("the message was copied and not deleted", err)
		}
	}
	s.state.Location = mailbox.Location{Folder: s.change.MoveTo, Key: keyOf(validity, lowest(uids, 1)[0])}
	s.uid = lowest(uids, 1)[0]
	return nil
}

// halfDone returns an error outside of package mailbox, since those mean that
// nothing was changed.
func (s *step) halfDone(doing string, err error) error {
	return fmt.Errorf("IMAP server %s: %s: %v: %w", s.config.Address, doing, err, errConnection)
}

// expunge deletes the copied message only.
func (s *step) expunge(ctx context.Context, set imap.UIDSet) error {
	err := s.do(ctx, "STORE", func() error {
		return s.client.Store(set, storeFlags(imap.StoreFlagsAdd, []string{mailbox.FlagDeleted}), nil).Close()
	})
	if err != nil {
		return err
	}
	return s.do(ctx, "EXPUNGE", func() error { return s.client.UIDExpunge(set).Close() })
}
