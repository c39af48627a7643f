package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/countersign-dev/countersign/internal/tenant/notebook"
)

// Guide reads what an agent has to know to act, as Markdown; with a query it
// tells only of the tools that the words fit.
func (c *Client) Guide(ctx context.Context, query string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerFor)
	defer cancel()
	rq := request{method: http.MethodGet, path: "/api/v1/guide"}
	if query != "" {
		rq.query = url.Values{"q": {query}}
	}
	answer, err := c.send(ctx, rq)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxBody))
	if err != nil {
		return "", &UnreachableError{URL: c.String(), Cause: err}
	}
	return string(text), nil
}

// Notes reads a page of what agents noted, newest first. A limit of zero means
// 50; the cursor is the NextCursor of the page before.
func (c *Client) Notes(ctx context.Context, limit int, cursor string) (Page[notebook.Note], error) {
	query := url.Values{}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	var page Page[notebook.Note]
	_, err := c.do(ctx, request{method: http.MethodGet, path: "/api/v1/notes", query: query}, &page)
	return page, err
}
