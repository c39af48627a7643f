package request

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Collection is a list of settings that people edit one by one. It is the one
// implementation of their pages, entity tags and preconditions. T is the type
// of an item in answers.
type Collection[T any] struct {
	// Name is the name of the list in cursors, and Noun that of an item in
	// errors.
	Name, Noun string
	// Read reads the items that the request may see. If a tenant can have
	// thousands, it reads only those that the path names.
	Read func(ctx context.Context, tx pgx.Tx, c *Call) ([]T, error)
	// Key returns the unique key of an item. Lists are ordered by it.
	Key func(T) string
	// ETag returns where an item has its entity tag; nil if items have none.
	ETag func(*T) *string
	// Version returns the part of an item that people edit, of which the entity
	// tag is a digest; nil is the whole item.
	Version func(T) any
}

// tagged sets the entity tag of an item, and returns it.
func (l Collection[T]) tagged(item *T) (string, error) {
	var version any = *item
	if l.Version != nil {
		version = l.Version(*item)
	}
	tag, err := ETagOf(version)
	if err == nil && l.ETag != nil {
		*l.ETag(item) = tag
	}
	return tag, err
}

// List answers with a page of the collection.
func (l Collection[T]) List(c *Call) error {
	all, err := Read(c, func(ctx context.Context, tx pgx.Tx) ([]T, error) { return l.Read(ctx, tx, c) })
	if err != nil {
		return err
	}
	for i := range all {
		if _, err := l.tagged(&all[i]); err != nil {
			return err
		}
	}
	return Sorted(c, l.Name, all, l.Key)
}

// find returns the item of a key with its entity tag; a missing item is
// fault.NotFound.
func (l Collection[T]) find(ctx context.Context, tx pgx.Tx, c *Call, key string) (item T, tag string, err error) {
	all, err := l.Read(ctx, tx, c)
	if err != nil {
		return item, "", err
	}
	i := slices.IndexFunc(all, func(it T) bool { return l.Key(it) == key })
	if i < 0 {
		return item, "", fault.New(fault.NotFound, "no %s %s", l.Noun, key)
	}
	tag, err = l.tagged(&all[i])
	return all[i], tag, err
}

// Require returns fault.NotFound if there is no item of a key.
func (l Collection[T]) Require(ctx context.Context, tx pgx.Tx, c *Call, key string) error {
	_, _, err := l.find(ctx, tx, c, key)
	return err
}

// Show answers with the item of a key, and its entity tag.
func (l Collection[T]) Show(c *Call, key string) error {
	return c.answerTagged(http.StatusOK, func() (item any, tag string, err error) {
		err = c.InTx(func(ctx context.Context, tx pgx.Tx) error {
			item, tag, err = l.find(ctx, tx, c, key)
			return err
		})
		return item, tag, c.Suggest(l.Noun, key, err)
	})
}

// Put changes the item of a key, or makes it, and answers with it.
func (l Collection[T]) Put(c *Call, key, subject string, change func(ctx context.Context, tx pgx.Tx) error) error {
	return c.answerTagged(http.StatusOK, func() (item any, tag string, err error) {
		err = l.Change(c, key, subject, func(ctx context.Context, tx pgx.Tx) error {
			if err := change(ctx, tx); err != nil {
				return err
			}
			item, tag, err = l.find(ctx, tx, c, key)
			return err
		})
		return item, tag, err
	})
}

// Delete removes the item of a key, and answers 204.
func (l Collection[T]) Delete(c *Call, key, subject string, remove func(ctx context.Context, tx pgx.Tx) error) error {
	if err := l.Change(c, key, subject, remove); err != nil {
		return err
	}
	return c.NoContent()
}

// Change runs a change of the item of a key, if that is the one of If-Match,
// and records it in the same transaction under a subject; "" is for a change
// that records itself.
func (l Collection[T]) Change(c *Call, key, subject string, change func(ctx context.Context, tx pgx.Tx) error) error {
	err := c.InConfigurationTx(func(ctx context.Context, tx pgx.Tx) error {
		err := c.CheckMatch(func() (string, error) {
			_, tag, err := l.find(ctx, tx, c, key)
			return tag, err
		})
		if err == nil {
			err = change(ctx, tx)
		}
		if err == nil && subject != "" {
			err = c.RecordChange(ctx, tx, subject)
		}
		return err
	})
	if err != nil {
		return c.Suggest(l.Noun, key, err)
	}
	c.Wake() // actions that waited may be due now
	return nil
}

// answerTagged writes the result of do and its entity tag.
func (c *Call) answerTagged(status int, do func() (item any, tag string, err error)) error {
	item, tag, err := do()
	if err != nil {
		return err
	}
	c.SetETag(tag)
	return c.JSON(status, item)
}

// Sorted answers with a page of a list that is in memory, in the order of the
// keys of its items.
func Sorted[T any](c *Call, list string, all []T, key func(T) string) error {
	return c.Result(SortedPage(c, list, all, key))
}

// SortedPage returns the page that Sorted answers with. The error is that of a
// cursor or a limit that cannot be read.
func SortedPage[T any](c *Call, list string, all []T, key func(T) string) (p wire.Page[T], err error) {
	limit, err := c.Limit()
	if err != nil {
		return p, err
	}
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	if cursor := c.Query.Get("cursor"); cursor != "" {
		last, err := ParseTextCursor(list, cursor, "/query/cursor")
		if err != nil {
			return p, err
		}
		first := slices.IndexFunc(all, func(it T) bool { return key(it) > last })
		if first < 0 {
			first = len(all)
		}
		all = all[first:]
	}
	p.Items = append([]T{}, all[:min(limit, len(all))]...)
	if len(all) > limit {
		p.NextCursor = new(WriteTextCursor(list, key(all[limit-1])))
	}
	return p, nil
}

// PlacedPage returns a page of a list that is in memory, in its order. A cursor is a place
// in it.
func PlacedPage[T any](c *Call, list string, all []T) (p wire.Page[T], err error) {
	limit, err := c.Limit()
	if err != nil {
		return p, err
	}
	from := 0
	if cursor := c.Query.Get("cursor"); cursor != "" {
		text, err := ParseTextCursor(list, cursor, "/query/cursor")
		if err != nil {
			return p, err
		}
		last, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return p, errCursor("/query/cursor")
		}
		from = min(int(last)+1, len(all))
	}
	to := min(from+limit, len(all))
	p.Items = append([]T{}, all[from:to]...)
	if to < len(all) {
		p.NextCursor = new(WriteTextCursor(list, strconv.Itoa(to-1)))
	}
	return p, nil
}
