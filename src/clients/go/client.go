// Package vodbox is a client of vodbox, a video platform: a method for each operation of its API, resumable uploads,
// verification of webhooks, and playback tokens.
package vodbox

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Version is that of the server which this package was generated from.
const Version = "0"

// Config says how to reach a server. Give the credential that the calls need: the API key of a tenant, or the token of an
// operator, a worker, a live gateway or a batch upload. With several, an operation uses the first one that it accepts, an
// API key before an operator's token.
type Config struct {
	// BaseURL is the URL of the server, such as https://video.example.com.
	BaseURL     string
	APIKey      string
	AdminToken  string
	WorkerToken string
	LiveToken   string
	BatchToken  string
	// MaxRetries is the number of repeats of a request that is safe to repeat, after connection errors and the statuses 429,
	// 502, 503 and 504. Retry-After is respected up to a minute. 0 means 3, and a negative number none.
	MaxRetries int
	// HTTP replaces the HTTP client, for proxies, certificates and tests. It must not follow redirects, which could lead
	// to another server.
	HTTP *http.Client
}

// Client is a client of one server. Goroutines may share it.
type Client struct {
	baseURL   string
	tokens    map[string]string
	transport transport
}

// New returns a client. It connects when a method is called.
func New(config Config) *Client {
	tokens := map[string]string{}
	for scheme, token := range map[string]string{
		"apiKey":       config.APIKey,
		"adminToken":   config.AdminToken,
		"workerToken":  config.WorkerToken,
		"gatewayToken": config.LiveToken,
		"batchToken":   config.BatchToken,
	} {
		if token != "" {
			tokens[scheme] = token
		}
	}
	client := config.HTTP
	if client == nil {
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	retries := config.MaxRetries
	if retries == 0 {
		retries = 3
	}
	return &Client{strings.TrimRight(config.BaseURL, "/"), tokens, transport{client, retries}}
}

// ID is the number of a record as a part of a path.
func ID(number int64) string { return strconv.FormatInt(number, 10) }

// Ptr is a pointer to a value, for fields that are optional.
func Ptr[T any](value T) *T { return &value }

// Nullable is a field that is sent with a value (Value), as null (Null), or not at all (nil).
type Nullable[T any] map[bool]T

// Value is a field with a value.
func Value[T any](value T) Nullable[T] { return Nullable[T]{true: value} }

// Null is a field that is sent as null.
func Null[T any]() Nullable[T] {
	var none T
	return Nullable[T]{false: none}
}

// MarshalJSON writes the value, or null.
func (n Nullable[T]) MarshalJSON() ([]byte, error) {
	if value, ok := n[true]; ok {
		return json.Marshal(value)
	}
	return []byte("null"), nil
}

// UnmarshalJSON reads a value, or null.
func (n *Nullable[T]) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = Null[T]()
		return nil
	}
	var value T
	err := json.Unmarshal(text, &value)
	*n = Value(value)
	return err
}

// AssetFailed is the error of a video that cannot be played; Code and Message are those of the asset.
type AssetFailed struct{ Code, Message string }

func (e *AssetFailed) Error() string { return e.Message + " (" + e.Code + ")" }

const longestPoll = 10 * time.Second

// WaitUntilReady polls an asset until it can be played, and returns it. The error is an *AssetFailed when it cannot, and
// that of the context when it ends before.
func (c *Client) WaitUntilReady(ctx context.Context, assetID int64) (*Asset, error) {
	for wait := 500 * time.Millisecond; ; wait = min(longestPoll, wait*3/2) {
		asset, err := c.GetAsset(ctx, ID(assetID))
		if err != nil {
			return nil, err
		}
		switch asset.PlaybackStatus {
		case "ready":
			return asset, nil
		case "errored":
			if asset.Error == nil {
				return nil, &AssetFailed{"asset_errored", "The video cannot be played."}
			}
			return nil, &AssetFailed{asset.Error.Code, asset.Error.Message}
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

func min(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// IsNotFound reports whether the error says that something does not exist, or that another tenant owns it.
func IsNotFound(err error) bool {
	var failure *Error
	return errors.As(err, &failure) && (failure.Status == http.StatusNotFound || failure.Status == http.StatusGone)
}
