package vodbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

const (
	firstBackoff   = 500 * time.Millisecond
	longestBackoff = 8 * time.Second
	// A server that asks for a longer wait gets no retry: the caller decides.
	longestWait = time.Minute
)

// Error is a request that failed. Match on Code, which is stable; Message is a sentence for people.
type Error struct {
	// Status is the HTTP status, or 0 without a response.
	Status  int
	Code    string
	Message string
	// Details has messages by field.
	Details map[string]any
	// RequestID identifies the request in the log of the server.
	RequestID string
	// RetryAfter is the wait that the server asks for; negative for none.
	RetryAfter time.Duration
	cause      error
}

func (e *Error) Error() string {
	parts := e.Code
	if e.Status != 0 {
		parts = strconv.Itoa(e.Status) + ", " + parts
	}
	if e.RequestID != "" {
		parts += ", " + e.RequestID
	}
	return e.Message + " (" + parts + ")"
}

func (e *Error) Unwrap() error { return e.cause }

// Content is the body of a request that is not JSON.
type Content struct {
	// Body is read from its current position, and again for a repeat.
	Body io.ReadSeeker
	// Type is the media type; empty for the operation's own.
	Type string
}

// RequestOption changes one call.
type RequestOption func(*request)

// WithIdempotencyKey makes repeats of a creation return its first response, for 24 hours.
func WithIdempotencyKey(key string) RequestOption {
	return func(r *request) { r.key = key }
}

// WithHeader adds a header.
func WithHeader(name, value string) RequestOption {
	return func(r *request) {
		if r.more == nil {
			r.more = http.Header{}
		}
		r.more.Set(name, value)
	}
}

type request struct {
	method string
	// path has texts and ids in turn.
	path    []string
	auth    [][]string
	query   any
	cursor  *string
	headers map[string]*string
	tokens  map[string]string
	// isKeyed: the operation takes an Idempotency-Key.
	isKeyed     bool
	key         string
	json        any
	form        any
	content     *Content
	contentType string
	// isRepeatable: also when it is unknown whether it was processed.
	isRepeatable bool
	more         http.Header
	options      []RequestOption
}

type response struct {
	status int
	header http.Header
	body   []byte
}

// decode reads JSON. A page of a proxy, or of another server, is an error.
func (r *response) decode(result any) error {
	if err := json.Unmarshal(r.body, result); err != nil {
		kind := r.header.Get("Content-Type")
		message := fmt.Sprintf("The response is not what was expected, but %q: is the base URL that of vodbox?", kind)
		return &Error{Status: r.status, Code: "invalid_response", Message: message, RetryAfter: -1, cause: err}
	}
	return nil
}

// call sends a request, and returns its response: bytes as they are, all else from JSON.
func call[T any](ctx context.Context, c *Client, r *request) (T, error) {
	var result T
	received, err := c.send(ctx, r)
	if err != nil {
		return result, err
	}
	if raw, ok := any(&result).(*[]byte); ok {
		*raw = received.body
		return result, nil
	}
	if received.status == http.StatusNoContent || len(received.body) == 0 {
		return result, nil
	}
	return result, received.decode(&result)
}

// Request sends a request that has no method of its own, and reads the JSON of its response into result, unless it is nil.
func (c *Client) Request(ctx context.Context, method, path string, body, result any, options ...RequestOption) error {
	auth := [][]string{{"apiKey"}, {"adminToken"}}
	received, err := c.send(ctx, &request{method: method, path: []string{path}, auth: auth, json: body, options: options})
	if err != nil || result == nil || len(received.body) == 0 {
		return err
	}
	return received.decode(result)
}

func (c *Client) send(ctx context.Context, given *request) (*response, error) {
	r := *given
	for _, option := range r.options {
		option(&r)
	}
	address, err := c.address(&r)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	c.authenticate(&r, header)
	for name, value := range r.headers {
		if value != nil {
			header.Set(name, *value)
		}
	}
	if r.isKeyed || r.key != "" {
		if r.key == "" {
			r.key = newKey()
		}
		header.Set("Idempotency-Key", r.key)
	}
	for name, values := range r.more {
		header[name] = values
	}
	body, kind, err := r.body()
	if err != nil {
		return nil, err
	}
	if kind != "" {
		header.Set("Content-Type", kind)
	}
	repeatable := r.isRepeatable || r.key != "" || r.method == "GET" || r.method == "HEAD" || r.method == "PUT"
	return c.transport.send(ctx, r.method, address, header, body, repeatable, c.transport.retries)
}

func (c *Client) address(r *request) (string, error) {
	var address strings.Builder
	address.WriteString(c.baseURL)
	for index, part := range r.path {
		if index%2 == 0 {
			address.WriteString(part)
			continue
		}
		if part == "" || part == "." || part == ".." {
			return "", fmt.Errorf("vodbox: %q is not an id", part)
		}
		address.WriteString(url.PathEscape(part))
	}
	values := valuesOf(r.query)
	if r.cursor != nil {
		values.Set("cursor", *r.cursor)
	}
	if len(values) > 0 {
		address.WriteString("?" + values.Encode())
	}
	return address.String(), nil
}

func (c *Client) authenticate(r *request, header http.Header) {
	token := func(scheme string) string {
		if own, ok := r.tokens[scheme]; ok {
			return own
		}
		return c.tokens[scheme]
	}
	for _, schemes := range r.auth {
		hasAll := true
		for _, scheme := range schemes {
			hasAll = hasAll && token(scheme) != ""
		}
		if !hasAll {
			continue
		}
		for _, scheme := range schemes {
			header.Set(securityHeaders[scheme], token(scheme))
		}
		return
	}
}

// body returns a function that opens the body from its beginning, nil for none, and its media type.
func (r *request) body() (func() (io.Reader, int64, error), string, error) {
	fixed := func(content []byte) func() (io.Reader, int64, error) {
		return func() (io.Reader, int64, error) { return bytes.NewReader(content), int64(len(content)), nil }
	}
	if r.content != nil {
		kind := r.content.Type
		if kind == "" {
			kind = r.contentType
		}
		start, err := r.content.Body.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, "", err
		}
		end, err := r.content.Body.Seek(0, io.SeekEnd)
		open := func() (io.Reader, int64, error) {
			_, err := r.content.Body.Seek(start, io.SeekStart)
			return io.LimitReader(r.content.Body, end-start), end - start, err
		}
		return open, kind, err
	}
	if r.form != nil {
		content, kind, err := formOf(r.form)
		return fixed(content), kind, err
	}
	if isNil(r.json) {
		return nil, "", nil
	}
	content, err := json.Marshal(r.json)
	return fixed(content), "application/json", err
}

func isNil(value any) bool {
	if value == nil {
		return true
	}
	kind := reflect.ValueOf(value)
	return kind.Kind() == reflect.Pointer && kind.IsNil()
}

// Fields of a struct by the names of their JSON, without those that are nil.
func eachField(fields any, use func(name string, value reflect.Value)) {
	if isNil(fields) {
		return
	}
	of := reflect.Indirect(reflect.ValueOf(fields))
	for index := 0; index < of.NumField(); index++ {
		name, _, _ := strings.Cut(of.Type().Field(index).Tag.Get("json"), ",")
		value := of.Field(index)
		switch value.Kind() {
		case reflect.Pointer:
			if value.IsNil() {
				continue
			}
			value = value.Elem()
		case reflect.Slice, reflect.Map:
			if value.Len() == 0 {
				continue
			}
		}
		use(name, value)
	}
}

func valuesOf(query any) url.Values {
	values := url.Values{}
	eachField(query, func(name string, value reflect.Value) { values.Set(name, fmt.Sprint(value.Interface())) })
	return values
}

func formOf(fields any) ([]byte, string, error) {
	var content bytes.Buffer
	form := multipart.NewWriter(&content)
	var failure error
	eachField(fields, func(name string, value reflect.Value) {
		var err error
		if file, ok := value.Interface().([]byte); ok {
			var part io.Writer
			if part, err = form.CreateFormFile(name, name); err == nil {
				_, err = part.Write(file)
			}
		} else {
			err = form.WriteField(name, fmt.Sprint(value.Interface()))
		}
		if err != nil {
			failure = err
		}
	})
	if err := form.Close(); err != nil {
		failure = err
	}
	return content.Bytes(), form.FormDataContentType(), failure
}

type transport struct {
	http    *http.Client
	retries int
}

// send returns a response with a status of 200 to 299: a redirect is an error, because it could lead to another server.
func (t transport) send(
	ctx context.Context,
	method, address string,
	header http.Header,
	open func() (io.Reader, int64, error),
	isRepeatable bool,
	retries int,
) (*response, error) {
	for attempt := 0; ; attempt++ {
		received, err := t.attempt(ctx, method, address, header, open)
		if err == nil {
			return received, nil
		}
		var failure *Error
		if !errors.As(err, &failure) || attempt >= retries {
			return nil, err
		}
		wait, ok := waitFor(failure, isRepeatable, attempt)
		if !ok {
			return nil, err
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func (t transport) attempt(
	ctx context.Context,
	method, address string,
	header http.Header,
	open func() (io.Reader, int64, error),
) (*response, error) {
	var body io.Reader
	var length int64
	if open != nil {
		var err error
		if body, length, err = open(); err != nil {
			return nil, err
		}
	}
	sent, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	sent.ContentLength = length
	if length == 0 {
		sent.Body = http.NoBody
	}
	sent.Header = header.Clone()
	sent.Header.Set("User-Agent", "vodbox-go/"+Version)
	received, err := t.http.Do(sent)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// A presigned URL is a credential, and errors are logged.
		shown, _, _ := strings.Cut(address, "?")
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		message := fmt.Sprintf("%s %s: %v", method, shown, err)
		return nil, &Error{Code: "connection_failed", Message: message, RetryAfter: -1, cause: err}
	}
	defer received.Body.Close()
	text, err := io.ReadAll(received.Body)
	if err != nil {
		return nil, &Error{Code: "connection_failed", Message: err.Error(), RetryAfter: -1, cause: err}
	}
	result := &response{received.StatusCode, received.Header, text}
	if result.status < 200 || result.status > 299 {
		return nil, errorOf(result)
	}
	return result, nil
}

// errorOf is the error that a response means. A proxy's response has no JSON; its code is http_<status>.
func errorOf(r *response) *Error {
	var fields struct {
		Error     string         `json:"error"`
		Code      string         `json:"code"`
		Details   map[string]any `json:"details"`
		RequestID string         `json:"request_id"`
	}
	if json.Unmarshal(r.body, &fields) != nil || fields.Error == "" {
		fields.Error = fmt.Sprintf("HTTP status %d", r.status)
		if location := r.header.Get("Location"); location != "" && r.status < 400 {
			fields.Error += "; the base URL may have to be that of " + location
		}
	}
	if fields.Code == "" {
		fields.Code = fmt.Sprintf("http_%d", r.status)
	}
	if fields.RequestID == "" {
		fields.RequestID = r.header.Get("X-Request-Id")
	}
	return &Error{r.status, fields.Code, fields.Error, fields.Details, fields.RequestID, retryAfter(r.header), nil}
}

func waitFor(failure *Error, isRepeatable bool, attempt int) (time.Duration, bool) {
	if failure.Status == 0 {
		// Not sent, so every method may be repeated.
		var dial *net.OpError
		isUnsent := errors.As(failure.cause, &dial) && dial.Op == "dial"
		return backoff(attempt), isRepeatable || isUnsent
	}
	isRefused := failure.Status == http.StatusTooManyRequests || failure.Status == http.StatusServiceUnavailable
	if isRefused && failure.RetryAfter >= 0 {
		// Refused before it was processed.
		return failure.RetryAfter, failure.RetryAfter <= longestWait
	}
	isPassing := failure.Status >= http.StatusBadGateway && failure.Status <= http.StatusGatewayTimeout
	return backoff(attempt), failure.Status == http.StatusTooManyRequests || (isRepeatable && isPassing)
}

func backoff(attempt int) time.Duration {
	longest := longestBackoff
	if attempt < 4 {
		longest = firstBackoff << attempt
	}
	half := int64(longest / 2)
	random, err := rand.Int(rand.Reader, big.NewInt(half+1))
	if err != nil {
		return longest
	}
	return time.Duration(half + random.Int64())
}

// retryAfter is from a number or a date (RFC 9110, 10.2.3); negative for none.
func retryAfter(header http.Header) time.Duration {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(text)
	if err != nil {
		return -1
	}
	if wait := time.Until(date); wait > 0 {
		return wait
	}
	return 0
}

func newKey() string {
	var bytes [16]byte
	if _, err := rand.Read(bytes[:]); err != nil {
		panic(err)
	}
	return hex.EncodeToString(bytes[:])
}
