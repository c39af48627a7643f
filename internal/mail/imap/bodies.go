package imap

import (
	"cmp"
	"context"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

const (
	batchMessages = 50
	batchBytes    = 8 << 20
	// unknownSize is the assumed size of a message of unknown size.
	unknownSize = 256 << 10
)

// result is the result of reading one item.
type result struct {
	item mailbox.Item
	raw  []byte
	err  error
}

// nextBatch returns the first items of one folder that fit in memory together.
func nextBatch(items []mailbox.Item) []mailbox.Item {
	var bytes int64
	for i, item := range items {
		size := item.Size
		if size <= 0 {
			size = unknownSize
		}
		if bytes += size; i > 0 && (i == batchMessages || bytes > batchBytes || item.Folder != items[0].Folder) {
			return items[:i]
		}
	}
	return items
}

// bodies reads the batches of one Read.
type bodies struct {
	// tooLarge holds the locations over the limit, including those found by
	// connections that closed because of it.
	tooLarge map[mailbox.Location]bool
}

// read reads a batch. Items missing from the answer are requested once more,
// since an unsolicited change of flags looks like the answer.
func (b *bodies) read(ctx context.Context, conn *connection, batch []mailbox.Item) ([]result, error) {
	data, err := conn.examine(ctx, batch[0].Folder)
	if err != nil {
		return nil, err
	}
	limits, err := b.limits(ctx, conn, data.UIDValidity, batch)
	if err != nil {
		return nil, err
	}
	var announced int64
	for _, item := range batch {
		if _, uid, err := splitKey(item.Key); err == nil && limits[uid] > 0 {
			announced += cmp.Or(max(item.Size, 0), unknownSize)
		}
	}
	if err := conn.config.Quota.TakeBytes(ctx, announced); err != nil {
		return nil, err
	}
	read := map[imap.UID][]byte{}
	options := &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{{Peek: true}}}
	for range 2 {
		var missing imap.UIDSet
		for uid := range limits {
			if read[uid] == nil {
				missing.AddNum(uid)
			}
		}
		if len(missing) == 0 {
			break
		}
		err := conn.fetchBodies(ctx, missing, options, limits, func(m *fetched) {
			if m.body != nil {
				read[m.uid] = m.body
			} else if m.tooLarge {
				b.tooLarge[mailbox.Location{Folder: batch[0].Folder, Key: keyOf(data.UIDValidity, m.uid)}] = true
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return b.results(data.UIDValidity, batch, read), nil
}

// limits returns the UIDs to read and the limits of their bodies: about the
// size that the server reported, which bounds the memory of a batch.
func (b *bodies) limits(ctx context.Context, conn *connection, validity uint32, batch []mailbox.Item) (map[imap.UID]int64, error) {
	limits := map[imap.UID]int64{}
	var unknown imap.UIDSet
	for _, item := range batch {
		v, uid, err := splitKey(item.Key)
		if err != nil || v != validity || b.tooLarge[item.Location] {
			continue
		}
		limits[uid] = min(2*item.Size+unknownSize, conn.config.MaxSize)
		if item.Size <= 0 {
			unknown.AddNum(uid)
		}
	}
	if len(unknown) == 0 {
		return limits, nil
	}
	err := conn.fetch(ctx, unknown, &imap.FetchOptions{UID: true, RFC822Size: true}, func(m *fetched) {
		limits[m.uid] = min(2*m.size+unknownSize, conn.config.MaxSize)
		if m.size > conn.config.MaxSize {
			delete(limits, m.uid)
			b.tooLarge[mailbox.Location{Folder: batch[0].Folder, Key: keyOf(validity, m.uid)}] = true
		}
	})
	return limits, err
}

func (b *bodies) results(validity uint32, batch []mailbox.Item, read map[imap.UID][]byte) []result {
	results := make([]result, len(batch))
	for i, item := range batch {
		results[i] = result{item: item, err: mailbox.ErrGone}
		v, uid, err := splitKey(item.Key)
		switch {
		case err != nil || v != validity:
		case b.tooLarge[item.Location]:
			results[i].err = mailbox.ErrTooLarge
		case read[uid] != nil:
			results[i].raw, results[i].err = read[uid], nil
		}
	}
	return results
}
