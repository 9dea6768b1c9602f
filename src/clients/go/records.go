package vodbox

import (
	"context"
	"net/url"
	"strings"
)

// Records is a list whose pages are requested while it is read:
//
//	for assets.Next(ctx) {
//		use(assets.Value())
//	}
//	return assets.Err()
type Records[T any] struct {
	client  *Client
	request *request
	cursor  *string
	page    []T
	at      int
	isLast  bool
	err     error
}

func newRecords[T any](client *Client, request *request, cursor *string) *Records[T] {
	return &Records[T]{client: client, request: request, cursor: cursor, at: -1}
}

// Next moves to the next record, and reports whether there is one.
func (r *Records[T]) Next(ctx context.Context) bool {
	for r.at++; r.at >= len(r.page); r.at = 0 {
		if _, ok := r.NextPage(ctx); !ok {
			return false
		}
	}
	return true
}

// Value is the record at which the list is.
func (r *Records[T]) Value() T { return r.page[r.at] }

// Err is the error that ended the list, if any.
func (r *Records[T]) Err() error { return r.err }

// NextPage returns the next page, for a program that stores Cursor, and whether there is one.
func (r *Records[T]) NextPage(ctx context.Context) ([]T, bool) {
	if r.isLast || r.err != nil {
		return nil, false
	}
	page := *r.request
	page.cursor = r.cursor
	r.page = nil
	response, err := r.client.send(ctx, &page)
	if err == nil {
		err = response.decode(&r.page)
	}
	if err != nil {
		r.err = err
		return nil, false
	}
	next := nextCursor(response.header["Link"])
	r.isLast = next == nil || (r.cursor != nil && *next == *r.cursor)
	r.cursor = next
	return r.page, true
}

// Cursor continues after the page that was read last; nil after the last page.
func (r *Records[T]) Cursor() *string { return r.cursor }

// Only the cursor of the link is used: the request, with its credential, always goes to this server.
func nextCursor(links []string) *string {
	for _, link := range strings.Split(strings.Join(links, ","), ",") {
		target, parameters, found := strings.Cut(link, ">")
		if !found || !strings.Contains(strings.ReplaceAll(parameters, `"`, ""), "rel=next") {
			continue
		}
		address, err := url.Parse(strings.TrimLeft(target, " <"))
		if err != nil {
			return nil
		}
		if cursor := address.Query().Get("cursor"); cursor != "" {
			return &cursor
		}
	}
	return nil
}
