package imap

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

const (
	// maxUnusable limits the messages that a Reader skips.
	maxUnusable = 1000
	// maxFailed is the number of consecutive failed messages after which other
	// messages are probed.
	maxFailed = 3
	// maxIsolations limits how often one call is repeated without the failed
	// messages.
	maxIsolations = 10
)

// reasonUnusable is shown for skipped messages.
const reasonUnusable = "the server gives no metadata of the message that can be read"

// unusable holds the UIDs of messages without readable metadata by folder and
// UIDVALIDITY.
type unusable map[opened][]imap.UID

// opened is an open folder.
type opened struct {
	folder   string
	validity uint32
}

// fetchError is a failed FETCH of metadata, which a single message may cause.
type fetchError struct {
	err     error
	in      opened
	set     imap.UIDSet
	options *imap.FetchOptions
	// unparsed reports whether the server answered, but not in IMAP.
	unparsed bool
}

// Error implements error.
func (e *fetchError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *fetchError) Unwrap() error { return e.err }

// fetchFault returns the error of a FETCH of metadata. A limit, a silent server
// and the end of ctx are not caused by messages.
func (conn *connection) fetchFault(ctx context.Context, set imap.UIDSet, options *imap.FetchOptions, err error) error {
	if err == nil || ctx.Err() != nil || conn.socket.silent.Load() || errors.Is(err, mailbox.ErrBusy) {
		return err
	}
	return &fetchError{
		err: err, in: conn.opened, set: set, options: options,
		unparsed: errors.Is(err, errConnection) && !errors.Is(err, errUnavailable) && !conn.socket.broken.Load(),
	}
}

// run calls a function with a connection, and again without the messages whose
// metadata cannot be read.
func (r *Reader) run(ctx context.Context, call func(*connection) error) error {
	for attempt := 1; ; attempt++ {
		err := r.work.run(ctx, call)
		failed, ok := errors.AsType[*fetchError](err)
		if !ok || attempt > maxIsolations {
			return err
		}
		if found, isolated := r.isolate(ctx, failed); isolated != nil || !found && attempt > 1 {
			return cmp.Or(ctx.Err(), err)
		}
	}
}

// isolate finds the messages of a set without readable metadata, by halving the
// set, and reports whether there are any. It fails if no message has readable
// metadata.
func (r *Reader) isolate(ctx context.Context, failed *fetchError) (found bool, err error) {
	answered, bad := 0, []imap.UID(nil)
	probe := func(set imap.UIDSet) (ok bool, err error) {
		read := 0 // includes partial answers
		err = r.reopen(ctx, failed.in, func(conn *connection) error {
			return conn.fetch(ctx, set, failed.options, func(*fetched) { read++ })
		})
		if err == nil {
			answered += read
		}
		if _, ok := errors.AsType[*fetchError](err); ok {
			return false, nil
		}
		return err == nil, err
	}
	var halve func(imap.UIDSet) error
	halve = func(set imap.UIDSet) error {
		if ok, err := probe(set); ok || err != nil {
			return err
		}
		if count(set) == 1 {
			bad = append(bad, set[0].Start)
			if len(bad) >= maxFailed && answered == 0 || len(r.unusable[failed.in])+len(bad) > maxUnusable {
				return failed
			}
			return nil
		}
		low, high := halves(set)
		if err := halve(low); err != nil {
			return err
		}
		return halve(high)
	}
	if err := halve(failed.set); err != nil || len(bad) == 0 {
		return false, err
	}
	if answered == 0 {
		if err := r.control(ctx, failed, probe, &answered); err != nil {
			return false, err
		}
	}
	r.unusable[failed.in] = append(r.unusable[failed.in], bad...)
	return true, nil
}

// control fails if the folder has other messages and the metadata of none can
// be read.
func (r *Reader) control(ctx context.Context, failed *fetchError, probe func(imap.UIDSet) (bool, error), answered *int) error {
	var there imap.UIDSet
	err := r.reopen(ctx, failed.in, func(conn *connection) (err error) {
		there, err = conn.between(ctx, 1, 0)
		return err
	})
	if err != nil {
		return err
	}
	for _, part := range failed.set {
		there = append(clip(there, 1, part.Start-1), after(there, part.Stop)...)
	}
	for _, uid := range highest(without(there, r.unusable[failed.in]), maxFailed) {
		if _, err := probe(imap.UIDSetNum(uid)); err != nil || *answered > 0 {
			return err
		}
	}
	if len(there) > 0 {
		return failed
	}
	return nil
}

// reopen opens a folder and calls a function once. It fails if the locations of
// the folder are void.
func (r *Reader) reopen(ctx context.Context, in opened, call func(*connection) error) error {
	return r.work.try(ctx, func(conn *connection) error {
		if _, err := conn.examine(ctx, in.folder); err != nil {
			return err
		}
		if conn.opened != in {
			return errConnection
		}
		return call(conn)
	})
}

// halves splits a set of several UIDs without expanding a range.
func halves(set imap.UIDSet) (low, high imap.UIDSet) {
	if len(set) > 1 {
		return set[:len(set)/2], set[len(set)/2:]
	}
	middle := set[0].Start + (set[0].Stop-set[0].Start)/2
	return imap.UIDSet{{Start: set[0].Start, Stop: middle}}, imap.UIDSet{{Start: middle + 1, Stop: set[0].Stop}}
}

// after returns the part of a set after a UID.
func after(set imap.UIDSet, uid imap.UID) imap.UIDSet {
	if uid == math.MaxUint32 {
		return nil
	}
	return clip(set, uid+1, math.MaxUint32)
}

// without removes some UIDs from a set.
func without(set imap.UIDSet, removed []imap.UID) imap.UIDSet {
	for _, uid := range removed {
		set = append(clip(set, 1, uid-1), after(set, uid)...)
	}
	return set
}

// unusableItem returns the item of a message without readable metadata.
func unusableItem(in opened, uid imap.UID) mailbox.Item {
	return mailbox.Item{
		Location: mailbox.Location{Folder: in.folder, Key: keyOf(in.validity, uid)},
		Received: time.Now(), Unusable: reasonUnusable,
	}
}
