package vodbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// While a secret is rotated there are two.
const mostSignatures = 10

// ErrWebhook is the error of a request that is not a delivery of this webhook, or is too old. Respond with 400.
var ErrWebhook = errors.New("vodbox: the webhook is not valid")

type webhookError string

func (e webhookError) Error() string { return string(e) }
func (webhookError) Unwrap() error   { return ErrWebhook }

// now is replaced by tests.
var now = time.Now

// VerifyWebhook verifies a delivery and returns its event. Body is the raw body, byte for byte, and signature the header
// Svc-Signature. Secrets are those of the endpoint, of which any may match: two while one is rotated. A delivery that was
// signed longer ago than tolerance is refused, because an attacker may repeat an old one; 0 means five minutes.
// Deliveries may arrive twice: store the ID of each event.
func VerifyWebhook(body []byte, signature string, tolerance time.Duration, secrets ...string) (*WebhookEvent, error) {
	if len(secrets) == 0 {
		return nil, errors.New("vodbox: a secret is required")
	}
	if tolerance == 0 {
		tolerance = 5 * time.Minute
	}
	if signature == "" {
		return nil, webhookError("The request has no header Svc-Signature.")
	}
	timestamp, signatures := parseSignature(signature)
	seconds, err := strconv.ParseUint(timestamp, 10, 40)
	if err != nil || len(signatures) == 0 {
		return nil, webhookError("The header Svc-Signature is malformed.")
	}
	// Every pair is compared, so the time does not depend on which one matches.
	matches := false
	for _, secret := range secrets {
		if secret == "" {
			return nil, errors.New("vodbox: a secret is required")
		}
		sum := hmac.New(sha256.New, []byte(secret))
		sum.Write([]byte(timestamp + "."))
		sum.Write(body)
		expected := []byte(hex.EncodeToString(sum.Sum(nil)))
		for _, each := range signatures {
			if hmac.Equal(expected, []byte(each)) {
				matches = true
			}
		}
	}
	if !matches {
		return nil, webhookError("The signature does not match the body and the secret.")
	}
	if age := now().Sub(time.Unix(int64(seconds), 0)); age > tolerance || age < -tolerance {
		return nil, webhookError("The delivery is too old, or the clocks differ.")
	}
	var event WebhookEvent
	if json.Unmarshal(body, &event) != nil {
		return nil, webhookError("The body is not JSON.")
	}
	return &event, nil
}

// parseSignature returns the time and the signatures of t=<seconds>,v1=<hex>,…
func parseSignature(header string) (timestamp string, signatures []string) {
	if len(header) > 4096 {
		header = header[:4096]
	}
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if name == "t" {
			timestamp = value
		} else if name == "v1" && len(signatures) < mostSignatures {
			signatures = append(signatures, strings.ToLower(value))
		}
	}
	return timestamp, signatures
}
