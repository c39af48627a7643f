package mailboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// ErrDown is an outage: it is not a kind of package mailbox.
var ErrDown = errors.New("the connection is down")

// Memory is a mailbox in memory, with the operations of its owner. It is safe
// for concurrent use.
type Memory struct {
	identify mailbox.Identify

	mu       sync.Mutex
	folders  []mailbox.Folder
	messages []*stored
	next     int
	opened   int
	open     int
	faults   map[string][]Fault
}

// stored is a message of a Memory.
type stored struct {
	mailbox.State
	raw []byte
}

// Fault is a fault of one call of a Writer.
type Fault struct {
	// Err is the error of the call; if nil, the call hangs until its context
	// ends.
	Err error
	// After makes the fault happen after the effect of the call.
	After bool
	// Before, if not nil, is called before the call reads the account. With it
	// and no Err, the call succeeds.
	Before func()
}

// NewMemory returns an account with folders of every use, whose writers
// identify messages by identify.
func NewMemory(identify mailbox.Identify) *Memory {
	return &Memory{identify: identify, faults: make(map[string][]Fault), folders: []mailbox.Folder{
		{Name: "INBOX", Use: mailbox.UseInbox}, {Name: "Archive", Use: mailbox.UseArchive}, {Name: "Drafts", Use: mailbox.UseDrafts},
		{Name: "Junk", Use: mailbox.UseJunk}, {Name: "Trash", Use: mailbox.UseTrash}, {Name: "Projects"},
		{Name: "Snoozed", Use: mailbox.UseSnoozed}, {Name: "Sent", Use: mailbox.UseSent},
	}}
}

// Deliver stores a message and returns its state.
func (a *Memory) Deliver(folder string, raw []byte, flags ...string) mailbox.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.add(folder, raw, flags)
}

func (a *Memory) add(folder string, raw []byte, flags []string) mailbox.State {
	a.next++
	m := &stored{
		State: mailbox.State{Location: mailbox.Location{Folder: folder, Key: fmt.Sprintf("1:%d", a.next)}, Flags: mailbox.Flags(flags...)},
		raw:   bytes.Clone(raw),
	}
	a.messages = append(a.messages, m)
	return m.State
}

// RemoveFolder deletes a folder with its messages.
func (a *Memory) RemoveFolder(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.folders = slices.DeleteFunc(a.folders, func(f mailbox.Folder) bool { return f.Name == name })
	a.messages = slices.DeleteFunc(a.messages, func(m *stored) bool { return m.Folder == name })
}

// Edit changes the message at a location on behalf of the owner, or removes it
// if change is nil. A message that moves to another folder gets another key.
func (a *Memory) Edit(at mailbox.Location, change func(state *mailbox.State, raw *[]byte)) {
	a.edit(change, func(m *stored) bool { return m.Location == at })
}

// EditID is Edit of the message of a folder that has a Message-ID.
func (a *Memory) EditID(folder, messageID string, change func(state *mailbox.State, raw *[]byte)) {
	a.edit(change, func(m *stored) bool { return m.Folder == folder && mailbox.MessageID(m.raw) == messageID })
}

func (a *Memory) edit(change func(state *mailbox.State, raw *[]byte), is func(*stored) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if change == nil {
		a.messages = slices.DeleteFunc(a.messages, is)
		return
	}
	for _, m := range a.messages {
		if !is(m) {
			continue
		}
		folder := m.Folder
		if change(&m.State, &m.raw); m.Folder != folder {
			a.next++
			m.Key = fmt.Sprintf("1:%d", a.next)
		}
	}
}

// Content returns the bytes of the message at a location, or mailbox.ErrGone.
func (a *Memory) Content(at mailbox.Location) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.messages {
		if m.Location == at {
			return bytes.Clone(m.raw), nil
		}
	}
	return nil, mailbox.ErrGone
}

// Messages returns the states of the messages in a folder, in order of arrival.
func (a *Memory) Messages(folder string) []mailbox.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	var states []mailbox.State
	for _, m := range a.messages {
		if m.Folder == folder {
			states = append(states, m.State)
		}
	}
	return states
}

// Raw returns the bytes of the messages in a folder that have a Message-ID
// (without angle brackets).
func (a *Memory) Raw(folder, messageID string) [][]byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all [][]byte
	for _, m := range a.messages {
		if m.Folder == folder && mailbox.MessageID(m.raw) == messageID {
			all = append(all, bytes.Clone(m.raw))
		}
	}
	return all
}

// Fail sets the faults of the next calls of a writer method: Open, Find,
// Content, Locate, Change, Append or Folders.
func (a *Memory) Fail(method string, faults ...Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults[method] = append(a.faults[method], faults...)
}

// Connections returns the number of writers opened so far and of those still
// open.
func (a *Memory) Connections() (opened, open int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.opened, a.open
}

// Open returns a writer of the account.
func (a *Memory) Open(ctx context.Context) (mailbox.Writer, error) {
	w := &writer{account: a}
	err := w.call(ctx, "Open", func() error {
		a.opened++
		a.open++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// writer is a mailbox.Writer of a Memory.
type writer struct {
	account *Memory
	closed  bool
}

// call runs a method, with its fault if one is set.
func (w *writer) call(ctx context.Context, method string, run func() error) error {
	a := w.account
	a.mu.Lock()
	defer a.mu.Unlock()
	var fault *Fault
	if queue := a.faults[method]; len(queue) > 0 {
		fault, a.faults[method] = &queue[0], queue[1:]
	}
	if fault != nil && fault.Before != nil {
		a.mu.Unlock()
		fault.Before()
		a.mu.Lock()
		if fault.Err == nil {
			fault = nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if fault == nil || fault.After {
		if err := run(); err != nil || fault == nil {
			return err
		}
	}
	if fault.Err == nil {
		a.mu.Unlock()
		<-ctx.Done()
		a.mu.Lock()
		return ctx.Err()
	}
	return fault.Err
}

// Find implements mailbox.Writer.
func (w *writer) Find(ctx context.Context, at mailbox.Location, messageID string, identity []byte) (found mailbox.State, err error) {
	err = w.call(ctx, "Find", func() error {
		var rest []*stored
		for _, m := range w.account.messages {
			if !bytes.Equal(w.account.identify(m.raw), identity) {
				continue
			}
			switch {
			case m.Location == at:
				found = m.copy()
				return nil
			case messageID == "" || mailbox.MessageID(m.raw) != messageID:
			case m.Folder == at.Folder:
				rest = append([]*stored{m}, rest...)
			default:
				rest = append(rest, m)
			}
		}
		if len(rest) == 0 {
			return mailbox.ErrGone
		}
		found = rest[0].copy()
		return nil
	})
	return found, err
}

func (m *stored) copy() mailbox.State {
	state := m.State
	state.Flags = slices.Clone(state.Flags)
	return state
}

// Content implements mailbox.Writer.
func (w *writer) Content(ctx context.Context, at mailbox.Location) (raw []byte, err error) {
	err = w.call(ctx, "Content", func() error {
		i := slices.IndexFunc(w.account.messages, func(m *stored) bool { return m.Location == at })
		if i < 0 {
			return mailbox.ErrGone
		}
		raw = bytes.Clone(w.account.messages[i].raw)
		return nil
	})
	return raw, err
}

// Locate implements mailbox.Writer.
func (w *writer) Locate(ctx context.Context, folder, messageID string) (at mailbox.Location, err error) {
	err = w.call(ctx, "Locate", func() error {
		a := w.account
		if !slices.ContainsFunc(a.folders, func(f mailbox.Folder) bool { return f.Name == folder }) {
			return mailbox.ErrNoFolder
		}
		i := slices.IndexFunc(a.messages, func(m *stored) bool { return m.Folder == folder && mailbox.MessageID(m.raw) == messageID })
		if i < 0 || messageID == "" {
			return mailbox.ErrGone
		}
		at = a.messages[i].Location
		return nil
	})
	return at, err
}

// Change implements mailbox.Writer.
func (w *writer) Change(ctx context.Context, expected mailbox.State, change mailbox.Change) (after mailbox.State, err error) {
	err = w.call(ctx, "Change", func() error {
		a := w.account
		i := slices.IndexFunc(a.messages, func(m *stored) bool { return m.Location == expected.Location })
		switch {
		case change.Check() != nil:
			return change.Check()
		case change.MoveTo != "" && !a.has(change.MoveTo):
			return mailbox.ErrNoFolder
		case i < 0:
			return mailbox.ErrGone
		case !a.messages[i].Equal(expected):
			return mailbox.ErrChanged
		}
		m := a.messages[i]
		m.Flags = change.Apply(m.Flags)
		after = m.copy()
		if change.MoveTo != "" && change.MoveTo != m.Folder {
			a.messages = slices.Delete(a.messages, i, i+1)
			after = a.add(change.MoveTo, m.raw, m.Flags)
		}
		return nil
	})
	return after, err
}

// Append implements mailbox.Writer.
func (w *writer) Append(ctx context.Context, folder string, flags []string, raw []byte) (at mailbox.Location, err error) {
	err = w.call(ctx, "Append", func() error {
		if !w.account.has(folder) {
			return mailbox.ErrNoFolder
		}
		for _, m := range w.account.messages {
			if id := mailbox.MessageID(raw); id != "" && id == mailbox.MessageID(m.raw) && m.Folder == folder {
				at = m.Location
				return mailbox.ErrExists
			}
		}
		at = w.account.add(folder, raw, flags).Location
		return nil
	})
	return at, err
}

// Folders implements mailbox.Writer.
func (w *writer) Folders(ctx context.Context) (all []mailbox.Folder, err error) {
	err = w.call(ctx, "Folders", func() error {
		all = slices.Clone(w.account.folders)
		return nil
	})
	return all, err
}

// Close implements mailbox.Writer.
func (w *writer) Close() error {
	w.account.mu.Lock()
	defer w.account.mu.Unlock()
	if !w.closed {
		w.closed = true
		w.account.open--
	}
	return nil
}

func (a *Memory) has(folder string) bool {
	return slices.ContainsFunc(a.folders, func(f mailbox.Folder) bool { return f.Name == folder })
}
