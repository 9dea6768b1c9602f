package vodbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sort"
)

// A part survives the restart of a server.
const partRetries = 8

// UploadOptions are those of Upload.
type UploadOptions struct {
	// OnProgress is called with numbers of bytes; sent decreases when a part is sent again.
	OnProgress func(sent, total int64)
	// ResumeFile lets an interrupted upload continue, even after kill -9: the same call sends only the parts that are
	// missing. The file is small, is private to one upload, and is deleted at the end.
	ResumeFile string
	// WaitUntilReady returns when the video can be played.
	WaitUntilReady bool
}

// Upload sends the file at path in parts, one after another, and returns its asset. Memory use does not depend on its size.
// Filename and BytesExpected of fields are set when they are empty. A changed file, or other fields, start a new upload.
func (c *Client) Upload(
	ctx context.Context,
	path string,
	fields InitiateMultipartUploadBody,
	options UploadOptions,
) (*Asset, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if fields.Filename == "" {
		fields.Filename = filepath.Base(path)
	}
	fields.BytesExpected = about.Size()
	identity, err := json.Marshal([]any{c.baseURL, fields, about.ModTime().UnixNano()})
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(identity)
	u := &upload{client: c, file: file, size: about.Size(), fields: fields, options: options}
	u.state = uploadState{Fingerprint: hex.EncodeToString(digest[:]), Key: newKey()}
	u.restore()
	assetID, err := u.run(ctx)
	if err != nil {
		return nil, err
	}
	var asset *Asset
	if options.WaitUntilReady {
		asset, err = c.WaitUntilReady(ctx, assetID)
	} else {
		asset, err = c.GetAsset(ctx, ID(assetID))
	}
	var failed *AssetFailed
	if options.ResumeFile != "" && (err == nil || errors.As(err, &failed)) {
		if missing := os.Remove(options.ResumeFile); missing != nil && !errors.Is(missing, os.ErrNotExist) && err == nil {
			err = missing
		}
	}
	return asset, err
}

// uploadState is what an interrupted upload needs. The key is stored before the request that creates the upload is sent: a
// repeat after a crash returns the same upload.
type uploadState struct {
	Fingerprint string `json:"fingerprint"`
	Key         string `json:"key"`
	UploadID    int64  `json:"upload_id"`
}

type upload struct {
	client  *Client
	file    *os.File
	size    int64
	fields  InitiateMultipartUploadBody
	options UploadOptions
	state   uploadState
}

func (u *upload) run(ctx context.Context) (int64, error) {
	found, err := u.resumed(ctx)
	// A repeated request may return an upload that has expired since.
	for attempt := 0; attempt < 2 && found == nil && err == nil; attempt++ {
		found, err = u.initiated(ctx)
	}
	if err != nil {
		return 0, err
	}
	if found == nil {
		return 0, &Error{Code: "upload_conflict", Message: "The upload ended before its bytes were sent.", RetryAfter: -1}
	}
	if found.Status != "completed" {
		etags := map[int64]string{}
		for _, part := range found.Parts {
			etags[part.PartNumber] = part.Etag
		}
		for number := int64(1); number <= *found.PartCount; number++ {
			if _, isDone := etags[number]; !isDone {
				if etags[number], err = u.sendPart(ctx, found.ID, number, *found.PartSize); err != nil {
					return 0, err
				}
			}
			u.report(number * *found.PartSize)
		}
		if err := u.complete(ctx, found.ID, etags); err != nil {
			return 0, err
		}
	}
	u.report(u.size)
	return found.AssetID, nil
}

func (u *upload) initiated(ctx context.Context) (*Upload, error) {
	if err := u.save(); err != nil {
		return nil, err
	}
	made, err := u.client.InitiateMultipartUpload(ctx, u.fields, WithIdempotencyKey(u.state.Key))
	if err != nil {
		return nil, err
	}
	u.state.UploadID = made.ID
	if err := u.save(); err != nil {
		return nil, err
	}
	// The response to a repeated request lacks the parts that were sent since.
	return u.resumed(ctx)
}

func (u *upload) resumed(ctx context.Context) (*Upload, error) {
	if u.state.UploadID == 0 {
		return nil, nil
	}
	found, err := u.client.GetUpload(ctx, ID(u.state.UploadID))
	if err != nil && !IsNotFound(err) {
		return nil, err
	}
	if err == nil && (found.Status == "pending" || found.Status == "completed") {
		return found, nil
	}
	u.state.Key = newKey()
	u.state.UploadID = 0
	return nil, nil
}

func (u *upload) sendPart(ctx context.Context, id, number, partSize int64) (string, error) {
	signed, err := u.client.SignUploadPart(ctx, ID(id), SignUploadPartBody{PartNumber: number})
	if err != nil {
		return "", err
	}
	start := (number - 1) * partSize
	length := partSize
	if rest := u.size - start; rest < length {
		length = rest
	}
	open := func() (io.Reader, int64, error) {
		return &reporting{io.NewSectionReader(u.file, start, length), start, u.report}, length, nil
	}
	// Without the API key: the URL is the credential, and may be one of another host.
	header := http.Header{}
	for name, value := range signed.Headers {
		header.Set(name, value)
	}
	received, err := u.client.transport.send(ctx, signed.Method, signed.URL, header, open, true, partRetries)
	if err != nil {
		return "", err
	}
	etag := received.header.Get("ETag")
	if etag == "" {
		return "", &Error{Code: "etag_missing", Message: "The storage returned no ETag for a part.", RetryAfter: -1}
	}
	return etag, nil
}

func (u *upload) complete(ctx context.Context, id int64, etags map[int64]string) error {
	parts := []map[string]any{}
	for number, etag := range etags {
		parts = append(parts, map[string]any{"part_number": number, "etag": etag})
	}
	sort.Slice(parts, func(a, b int) bool { return parts[a]["part_number"].(int64) < parts[b]["part_number"].(int64) })
	_, err := u.client.send(ctx, &request{
		method:       "POST",
		path:         []string{"/api/v1/uploads/", ID(id), "/complete_multipart"},
		auth:         [][]string{{"apiKey"}, {"adminToken"}},
		json:         map[string]any{"parts": parts, "bytes_received": u.size},
		isRepeatable: true,
	})
	return err
}

func (u *upload) report(position int64) {
	if u.options.OnProgress == nil {
		return
	}
	if position > u.size {
		position = u.size
	}
	u.options.OnProgress(position, u.size)
}

func (u *upload) restore() {
	if u.options.ResumeFile == "" {
		return
	}
	text, err := os.ReadFile(u.options.ResumeFile)
	var stored uploadState
	if err == nil && json.Unmarshal(text, &stored) == nil && stored.Fingerprint == u.state.Fingerprint && stored.Key != "" {
		u.state = stored
	}
}

// save replaces the file atomically, and syncs it.
func (u *upload) save() error {
	if u.options.ResumeFile == "" {
		return nil
	}
	text, err := json.Marshal(u.state)
	if err != nil {
		return err
	}
	// A file that only its owner can read.
	temporary, err := os.CreateTemp(filepath.Dir(u.options.ResumeFile), filepath.Base(u.options.ResumeFile)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = temporary.Write(text)
	if err == nil {
		err = temporary.Sync()
	}
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary.Name(), u.options.ResumeFile)
	}
	if err != nil {
		os.Remove(temporary.Name())
	}
	return err
}

// reporting counts what is read.
type reporting struct {
	io.Reader
	position int64
	report   func(int64)
}

func (r *reporting) Read(into []byte) (int, error) {
	count, err := r.Reader.Read(into)
	if count > 0 {
		r.position += int64(count)
		r.report(r.position)
	}
	return count, err
}
