// What the tests do with the module: `scenarios NAME` reads its input from stdin and prints JSON.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	vodbox "vodbox/client"
)

var given struct {
	Base     string
	Key      string
	Reader   string
	TenantID int64 `json:"tenant_id"`
	File     string
	Text     string
	State    string
	StopAt   int64 `json:"stop_at"`
	Asset    int64
	Body     string
	Secret   string
	Header   string `json:"signature"`
}

var ctx = context.Background()

func client() *vodbox.Client {
	return vodbox.New(vodbox.Config{BaseURL: given.Base, APIKey: given.Key})
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

// refusal is what an error says.
func refusal(err error) map[string]any {
	var failure *vodbox.Error
	var failed *vodbox.AssetFailed
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		return map[string]any{
			"kind": "error", "status": failure.Status, "code": failure.Code,
			"details": failure.Details, "request_id": failure.RequestID, "text": err.Error(),
		}
	case errors.As(err, &failed):
		return map[string]any{"kind": "failed", "code": failed.Code}
	case errors.Is(err, vodbox.ErrWebhook):
		return map[string]any{"kind": "webhook"}
	}
	return map[string]any{"kind": "other", "text": err.Error()}
}

func created(api *vodbox.Client, title string, options ...vodbox.RequestOption) vodbox.Asset {
	body := vodbox.CreateAssetBody{TenantID: given.TenantID}
	body.VideoAsset.Title = title
	body.VideoAsset.InputStatus = "pending"
	body.VideoAsset.PlaybackStatus = "draft"
	body.VideoAsset.SourceKey = fmt.Sprintf("tenants/%d/sources/film.mp4", given.TenantID)
	return must(api.CreateAsset(ctx, body, options...)).Asset
}

func titles(list *vodbox.Records[vodbox.Asset]) []string {
	found := []string{}
	for list.Next(ctx) {
		found = append(found, list.Value().Title)
	}
	must(0, list.Err())
	return found
}

func records() any {
	api := client()
	made := []vodbox.Asset{}
	for number := 0; number < 5; number++ {
		made = append(made, created(api, fmt.Sprintf("Film %d", number)))
	}
	limit := int64(2)
	pages := [][]string{}
	list := api.ListAssets(&vodbox.ListAssetsQuery{Limit: &limit})
	var second *string
	for page, ok := list.NextPage(ctx); ok; page, ok = list.NextPage(ctx) {
		if second == nil {
			second = list.Cursor()
		}
		found := []string{}
		for _, each := range page {
			found = append(found, each.Title)
		}
		pages = append(pages, found)
	}
	first := vodbox.ID(made[0].ID)
	var change vodbox.UpdateAssetBody
	change.VideoAsset.Title = vodbox.Ptr("Épisode “1”")
	change.VideoAsset.Description = vodbox.Value("About it")
	described := must(api.UpdateAsset(ctx, first, change))
	change.VideoAsset.Title = nil
	change.VideoAsset.Description = vodbox.Null[string]()
	undescribed := must(api.UpdateAsset(ctx, first, change))
	tags := must(api.UpdateTags(ctx, first, map[string]any{"year": 2026, "draft": true}))
	subtitle := must(api.CreateSubtitle(ctx, first, vodbox.CreateSubtitleBody{
		File: []byte("WEBVTT\n\n00:00.000 --> 00:02.000\nHello\n"), Language: "en", Label: "English",
		IsDefault: vodbox.Ptr(true),
	}))
	same := created(api, "Once", vodbox.WithIdempotencyKey("once")).ID == created(api, "Once", vodbox.WithIdempotencyKey("once")).ID
	csv := strings.NewReader("title,description,tags,original_filename\nNew,,,none.mp4\n")
	rows := must(api.ImportAssets(ctx, vodbox.Content{Body: csv}, nil))
	exported := must(api.ExportAssets(ctx, &vodbox.ExportAssetsQuery{Format: vodbox.Ptr("csv")}))
	must(0, api.DeleteAsset(ctx, vodbox.ID(made[1].ID)))
	_, gone := api.GetAsset(ctx, vodbox.ID(made[1].ID))
	return map[string]any{
		"pages":     pages,
		"all":       titles(api.ListAssets(&vodbox.ListAssetsQuery{Limit: &limit})),
		"continued": titles(api.ListAssets(&vodbox.ListAssetsQuery{Limit: &limit, Cursor: second})),
		"changed":   []any{described.Title, *described.Description, undescribed.Title, undescribed.Description, tags},
		"same":      same,
		"subtitle":  []any{subtitle.Label, subtitle.IsDefault},
		"unmatched": rows.Unmatched[0].Reason,
		"exported":  strings.SplitN(string(exported), "\r\n", 2)[0],
		"gone":      vodbox.IsNotFound(gone),
	}
}

func failures() any {
	api := client()
	asset := vodbox.ID(created(api, "Film").ID)
	var empty vodbox.UpdateAssetBody
	empty.VideoAsset.Title = vodbox.Ptr("")
	_, notFound := api.GetAsset(ctx, "999999")
	_, invalid := api.UpdateAsset(ctx, asset, empty)
	_, unauthorized := vodbox.New(vodbox.Config{BaseURL: given.Base, APIKey: "svc_wrong"}).GetAsset(ctx, asset)
	_, unreachable := vodbox.New(vodbox.Config{BaseURL: "http://127.0.0.1:1", MaxRetries: -1}).GetHealth(ctx)
	_, path := api.DeleteTag(ctx, asset, "..")
	stopped, stop := context.WithCancel(ctx)
	stop()
	_, canceled := api.GetAsset(stopped, asset)
	return map[string]any{
		"not_found":    refusal(notFound),
		"invalid":      refusal(invalid),
		"unauthorized": refusal(unauthorized),
		"forbidden":    refusal(vodbox.New(vodbox.Config{BaseURL: given.Base, APIKey: given.Reader}).DeleteAsset(ctx, asset)),
		"unreachable":  refusal(unreachable),
		"path":         refusal(path),
		"canceled":     errors.Is(canceled, context.Canceled),
	}
}

func planned() any {
	api := vodbox.New(vodbox.Config{BaseURL: given.Base, APIKey: given.Key, MaxRetries: 2})
	from := time.Now()
	waited := refusal(api.RevokeAPIKey(ctx, "1"))
	seconds := time.Since(from).Seconds()
	get := func() map[string]any {
		_, err := api.GetAsset(ctx, "1")
		return refusal(err)
	}
	results := []map[string]any{
		waited, refusal(api.RevokeAPIKey(ctx, "1")), refusal(api.RevokeAPIKey(ctx, "1")), get(), get(), get(),
	}
	list := api.ListAssets(nil)
	list.Next(ctx)
	return map[string]any{"results": append(results, refusal(list.Err())), "seconds": seconds}
}

func upload() any {
	api := client()
	seen := [][]int64{}
	fields := vodbox.InitiateMultipartUploadBody{Title: vodbox.Ptr("Clip"), Tags: map[string]any{"year": 2026}}
	asset := must(api.Upload(ctx, given.File, fields, vodbox.UploadOptions{
		OnProgress:     func(sent, total int64) { seen = append(seen, []int64{sent, total}) },
		WaitUntilReady: true,
	}))
	_, missing := api.Upload(ctx, "/nowhere/film.mp4", fields, vodbox.UploadOptions{})
	_, failed := api.Upload(ctx, given.Text, vodbox.InitiateMultipartUploadBody{}, vodbox.UploadOptions{WaitUntilReady: true})
	return map[string]any{
		"asset": asset, "last": seen[len(seen)-1], "missing": refusal(missing)["kind"], "failed": refusal(failed),
	}
}

// interrupted stops for ever once StopAt bytes are sent, until it is killed.
func interrupted() any {
	stop := func(sent, _ int64) {
		if sent >= given.StopAt {
			fmt.Println("reached")
			select {}
		}
	}
	fields := vodbox.InitiateMultipartUploadBody{Title: vodbox.Ptr("Interrupted")}
	must(client().Upload(ctx, given.File, fields, vodbox.UploadOptions{ResumeFile: given.State, OnProgress: stop}))
	return nil
}

func resumed() any {
	seen := []int64{}
	fields := vodbox.InitiateMultipartUploadBody{Title: vodbox.Ptr("Interrupted")}
	asset := must(client().Upload(ctx, given.File, fields, vodbox.UploadOptions{
		ResumeFile: given.State,
		OnProgress: func(sent, _ int64) { seen = append(seen, sent) },
	}))
	_, left := os.Stat(given.State)
	return map[string]any{"asset": asset.ID, "status": asset.InputStatus, "first": seen[0], "left": left == nil}
}

func webhook() any {
	event := must(vodbox.VerifyWebhook([]byte(given.Body), given.Header, 0, given.Secret))
	seconds := strings.TrimPrefix(strings.Split(given.Header, ",")[0], "t=")
	refused := map[string]any{}
	for name, header := range map[string]string{
		"empty":    "",
		"time":     strings.Replace(given.Header, seconds, seconds+"1", 1),
		"digits":   strings.Replace(given.Header, seconds, "١٢٣", 1),
		"unsigned": "t=" + seconds,
		"nameless": "t,v1,=,,",
		"bytes":    "t=" + seconds + ",v1=\xe9",
		"long":     "t=" + seconds + strings.Repeat(",v1=00", 100_000),
	} {
		_, err := vodbox.VerifyWebhook([]byte(given.Body), header, 0, given.Secret)
		refused[name] = refusal(err)
	}
	_, changed := vodbox.VerifyWebhook([]byte(given.Body+" "), given.Header, 0, given.Secret)
	_, other := vodbox.VerifyWebhook([]byte(given.Body), given.Header, 0, "whsec_new", "whsec_other")
	_, old := vodbox.VerifyWebhook([]byte(given.Body), given.Header, time.Nanosecond, given.Secret)
	_, none := vodbox.VerifyWebhook([]byte(given.Body), given.Header, 0, "")
	refused["body"], refused["secret"], refused["old"] = refusal(changed), refusal(other), refusal(old)
	rotated := must(vodbox.VerifyWebhook([]byte(given.Body), given.Header, 0, "whsec_new", given.Secret))
	return map[string]any{
		"event": event, "rotated": rotated.ID, "refused": refused, "no_secret": refusal(none)["kind"],
	}
}

func tokens() any {
	api := client()
	asset := must(api.GetAsset(ctx, vodbox.ID(given.Asset)))
	result := map[string]any{}
	for _, algorithm := range []string{"RS256", "EdDSA"} {
		key := must(api.CreateSigningKey(ctx, &vodbox.CreateSigningKeyBody{
			TenantID: &given.TenantID, Name: &algorithm, Algorithm: &algorithm,
		}))
		sign := func(id string, options vodbox.TokenOptions) string {
			options.KeyID, options.PrivateKey = key.KeyID, *key.PrivateKey
			return must(vodbox.SignPlaybackToken(id, options))
		}
		result[algorithm] = map[string]string{
			"valid":     sign(asset.ExternalID, vodbox.TokenOptions{}),
			"number":    sign(vodbox.ID(asset.ID), vodbox.TokenOptions{}),
			"thumbnail": sign(asset.ExternalID, vodbox.TokenOptions{Audience: "t"}),
			"future":    sign(asset.ExternalID, vodbox.TokenOptions{NotBefore: time.Now().Add(10 * time.Minute)}),
			"other":     sign("vid_other", vodbox.TokenOptions{}),
		}
	}
	refused := []bool{}
	for _, key := range []string{"", "no key", "-----BEGIN PRIVATE KEY-----"} {
		_, err := vodbox.SignPlaybackToken("vid_a", vodbox.TokenOptions{KeyID: "sk_a", PrivateKey: key})
		refused = append(refused, err != nil)
	}
	result["refused"] = refused
	return result
}

func main() {
	must(0, json.NewDecoder(os.Stdin).Decode(&given))
	scenarios := map[string]func() any{
		"records": records, "failures": failures, "planned": planned, "upload": upload, "interrupted": interrupted,
		"resumed": resumed, "webhook": webhook, "tokens": tokens,
	}
	var out bytes.Buffer
	must(0, json.NewEncoder(&out).Encode(scenarios[os.Args[1]]()))
	fmt.Print(out.String())
}
