package vodbox

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"strings"
	"time"
)

// TokenOptions are those of SignPlaybackToken.
type TokenOptions struct {
	// KeyID (sk_…) and PrivateKey are those of a signing key; PrivateKey is PEM, or the base64 of it that the server shows.
	KeyID      string
	PrivateKey string
	// ExpiresIn is two hours by default.
	ExpiresIn time.Duration
	// NotBefore is when the token becomes valid; zero for at once.
	NotBefore time.Time
	// Audience is "v" by default, for everything; "t" for the thumbnail, "s" for the storyboard, "g" for an animation.
	Audience string
}

// SignPlaybackToken signs a token for the playback of one asset: its vid_… id, your own external_id, or its number (ID). RSA
// keys sign with RS256, Ed25519 keys with EdDSA.
func SignPlaybackToken(asset string, options TokenOptions) (string, error) {
	if options.ExpiresIn == 0 {
		options.ExpiresIn = 2 * time.Hour
	}
	if options.ExpiresIn < 0 {
		return "", errors.New("vodbox: ExpiresIn must be positive")
	}
	if options.Audience == "" {
		options.Audience = "v"
	}
	key, err := parseKey(options.PrivateKey)
	if err != nil {
		return "", err
	}
	claims := map[string]any{"sub": asset, "aud": options.Audience, "exp": now().Add(options.ExpiresIn).Unix()}
	if !options.NotBefore.IsZero() {
		claims["nbf"] = options.NotBefore.Unix()
	}
	algorithm := "RS256"
	if _, isEd := key.(ed25519.PrivateKey); isEd {
		algorithm = "EdDSA"
	}
	header := map[string]any{"alg": algorithm, "typ": "JWT", "kid": options.KeyID}
	text, err := encoded(header, claims)
	if err != nil {
		return "", err
	}
	signature, err := signed(key, text)
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func encoded(parts ...any) (string, error) {
	texts := make([]string, len(parts))
	for index, part := range parts {
		text, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		texts[index] = base64.RawURLEncoding.EncodeToString(text)
	}
	return strings.Join(texts, "."), nil
}

func signed(key any, text string) ([]byte, error) {
	switch key := key.(type) {
	case ed25519.PrivateKey:
		return ed25519.Sign(key, []byte(text)), nil
	case *rsa.PrivateKey:
		digest := sha256.Sum256([]byte(text))
		return rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	}
	return nil, errKey
}

var errKey = errors.New("vodbox: a signing key is an RSA or Ed25519 key, not encrypted, as PEM or its base64")

func parseKey(text string) (any, error) {
	if !strings.Contains(text, "-----BEGIN") {
		decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil {
			return nil, errKey
		}
		text = string(decoded)
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errKey
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return nil, errKey
}
