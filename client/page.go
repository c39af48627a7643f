package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/countersign-dev/countersign/client/wire"
)

// Items iterates over a list, page by page. page returns the page that a
// cursor gets, the empty one getting the first. An error ends the iteration.
func Items[T any](page func(cursor string) (wire.Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := ""; ; {
			got, err := page(cursor)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range got.Items {
				if !yield(item, nil) {
					return
				}
			}
			if got.NextCursor == nil || *got.NextCursor == "" {
				return
			}
			cursor = *got.NextCursor
		}
	}
}

// maxPage is the largest page of the server.
const maxPage = 200

// list reads all items of a list.
func list[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	if query == nil {
		query = url.Values{}
	}
	query.Set("limit", strconv.Itoa(maxPage))
	var all []T
	for item, err := range Items(func(cursor string) (wire.Page[T], error) {
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		return read[wire.Page[T]](ctx, c, path, query)
	}) {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}
