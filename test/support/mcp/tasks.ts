import { expect } from "vitest";
import type { Answer } from "../client.ts";
import type { Result } from "./client.ts";

/**
 * What users ask of an agent, in plain words, and the calls that do it. A text of arguments that is `$name` or `$name.path` is a
 * value of `given`, `$0.path` a value of the first result, and `*` in a path is each item of a list.
 */
export type Task = {
  say: string;
  calls: [tool: string, args: Record<string, unknown>][];
  /** Whether it is done: by the public API, or by what the agent has read for its user. */
  outcome(of: Outcome): Promise<unknown> | unknown;
};

export type Outcome = { results: Result[]; given: Given; get(path: string): Promise<Answer> };

/** Ids and times of the library that the tasks are about. */
export type Given = {
  site: string;
  hook: string;
  today: string;
  weekAgo: string;
  friday: string;
  harbour: number;
  interview: number;
  beach: number[];
  tags: Record<string, string>;
};

const ready = (get: Outcome["get"], id: number) =>
  get(`/api/v1/assets/${id}`).then(({ body }) => {
    expect(body).toMatchObject({ playback_status: "ready" });
    return body;
  });
const titles = (result: Result | undefined) => result?.json.items.map(({ title }: { title: string }) => title);

/** Captions of the harbour tour, from which the agent is asked. */
export const CAPTIONS = `WEBVTT

00:00:01.000 --> 00:00:04.000
Welcome to the harbour tour.

00:01:10.000 --> 00:01:14.000
The lighthouse was built in 1822.
`;
const HELLO = "WEBVTT\n\n00:00.000 --> 00:01.500\nHello from the beach.\n";

export const TASKS: Task[] = [
  {
    say: "Add the video at this URL as “Sunset”, and say when it can be watched",
    calls: [
      ["upload_from_url", { url: "$site/sunset.mp4", title: "Sunset" }],
      ["wait_until_ready", { asset_id: "$0.asset_id", seconds: 300 }],
    ],
    async outcome({ results, get }) {
      expect(results[1]?.json).toMatchObject({ title: "Sunset", playback_status: "ready" });
      await ready(get, results[0]?.json.asset_id);
    },
  },
  {
    say: "Which of my videos failed to encode this week, and why?",
    calls: [["list_assets", { playback_status: "errored", created_from: "$weekAgo" }]],
    outcome({ results, given }) {
      expect(results[0]?.json.items).toMatchObject([{ id: given.interview, error: { code: expect.any(String) } }]);
    },
  },
  {
    say: "Try to encode the interview again",
    calls: [
      ["list_assets", { q: "interview" }],
      ["retry_asset", { id: "$0.items.0.id" }],
      ["wait_until_ready", { asset_id: "$0.items.0.id", seconds: 300 }],
    ],
    outcome({ results, given }) {
      expect(results[1]?.text).toMatch(/processing|queued/);
      expect(results[2]?.json).toMatchObject({ id: given.interview, playback_status: "errored" });
    },
  },
  {
    say: "Rename “Beach 1” to “Sylt”",
    calls: [
      ["list_assets", { q: "Beach 1" }],
      ["update_asset", { id: "$0.items.0.id", video_asset: { title: "Sylt at the beach" } }],
    ],
    async outcome({ given, get }) {
      expect((await ready(get, given.beach[0] as number)).title).toBe("Sylt at the beach");
    },
  },
  {
    say: "Tag all beach videos with season summer",
    calls: [
      ["list_assets", { q: "beach" }],
      ["change_assets", { ids: "$0.items.*.id", action: "tag", tags: { season: "summer" } }],
    ],
    async outcome({ given, get }) {
      for (const id of given.beach) expect((await ready(get, id)).tags).toMatchObject(given.tags);
    },
  },
  {
    say: "Join the two beach videos into one",
    calls: [
      ["list_assets", { q: "beach" }],
      ["join_assets", { asset_ids: "$0.items.*.id", title: "Both at the sea" }],
      ["wait_until_ready", { asset_id: "$1.id", seconds: 300 }],
    ],
    async outcome({ results, get }) {
      expect((await ready(get, results[1]?.json.id)).duration_seconds).toBeCloseTo(8, 0);
    },
  },
  {
    say: "Make a folder “Trailers” and move the sunset video into it",
    calls: [
      ["create_collection", { collection: { name: "Trailers", slug: "trailers" } }],
      ["list_assets", { q: "sunset" }],
      ["change_assets", { ids: "$1.items.*.id", action: "move", collection_id: "$0.id" }],
    ],
    async outcome({ results, get }) {
      const { body } = await get(`/api/v1/assets?collection_id=${results[0]?.json.id}`);
      expect(body.map(({ title }: { title: string }) => title)).toEqual(["Sunset"]);
    },
  },
  {
    say: "Publish the sunset video and give me a link to watch it",
    calls: [
      ["list_assets", { q: "sunset" }],
      ["update_asset", { id: "$0.items.0.id", video_asset: { playback_policy: "public" } }],
      ["get_playback", { id: "$0.items.0.id" }],
    ],
    async outcome({ results }) {
      const { embed_url: page, hls_url: manifest } = results[2]?.json ?? {};
      for (const url of [page, manifest]) expect((await fetch(url)).status, url).toBe(200);
    },
  },
  {
    say: "Make a clip of 30 seconds from minute 2 of the harbour tour, and publish it",
    calls: [
      ["list_assets", { q: "harbour tour" }],
      ["create_clip", { id: "$0.items.0.id", title: "Excerpt", start_seconds: 120, end_seconds: 150 }],
      ["update_asset", { id: "$1.id", video_asset: { playback_policy: "public" } }],
      ["wait_until_ready", { asset_id: "$1.id", seconds: 300 }],
    ],
    async outcome({ results, get }) {
      const clip = await ready(get, results[1]?.json.id);
      expect(clip).toMatchObject({ playback_policy: "public", duration_seconds: expect.closeTo(30, 0) });
    },
  },
  {
    say: "Cut off the first second of “Beach 2”",
    calls: [
      ["list_assets", { q: "Beach 2" }],
      ["trim_asset", { id: "$0.items.0.id", start_seconds: 1, end_seconds: 4, mode: "exact" }],
      ["wait_until_ready", { job_id: "$1.id", seconds: 300 }],
    ],
    async outcome({ given, get }) {
      expect((await ready(get, given.beach[1] as number)).duration_seconds).toBeLessThan(3.6);
    },
  },
  {
    say: "Delete the test upload",
    calls: [
      ["list_assets", { q: "test upload" }],
      ["delete_asset", { id: "$0.items.0.id" }],
    ],
    async outcome({ results, get }) {
      expect(titles(results[0])).toEqual(["Test upload"]);
      expect((await get(`/api/v1/assets/${results[0]?.json.items[0].id}`)).status).toBe(404);
    },
  },
  {
    say: "In which video do we speak about the lighthouse, and when?",
    calls: [["search_assets", { q: "lighthouse" }]],
    outcome({ results, given }) {
      const matches = [expect.objectContaining({ kind: "caption", start_ms: 70_000 })];
      expect(results[0]?.json.items).toMatchObject([{ asset_id: given.harbour, matches }]);
    },
  },
  {
    say: "Summarize what is said in the harbour tour",
    calls: [["get_transcript", { id: "$harbour" }]],
    outcome({ results }) {
      expect(results[0]?.text).toMatch(/Welcome to the harbour tour\.\s+The lighthouse was built in 1822\./);
    },
  },
  {
    say: "Add German captions to the harbour tour",
    calls: [
      ["list_subtitles", { video_asset_id: "$harbour" }],
      ["translate_subtitle", { video_asset_id: "$harbour", id: "$0.items.0.id", target_language: "de" }],
    ],
    async outcome({ given, get }) {
      const { body } = await get(`/api/v1/assets/${given.harbour}/subtitles?include=content`);
      const german = body.find(({ language }: { language: string }) => language === "de");
      expect(german).toMatchObject({ status: "ready", content: expect.stringContaining("LIGHTHOUSE") });
    },
  },
  {
    say: "Transcribe the sunset video",
    calls: [
      ["list_assets", { q: "sunset" }],
      ["generate_subtitle", { video_asset_id: "$0.items.0.id", language: "en" }],
      ["wait_until_ready", { caption_job_id: "$1.job.id", seconds: 300 }],
    ],
    async outcome({ results, get }) {
      expect(results[2]?.json).toMatchObject({ status: "completed" });
      const { body } = await get(`/api/v1/assets/${results[0]?.json.items[0].id}/subtitles`);
      expect(body).toMatchObject([{ language: "en", source: "auto", status: "ready" }]);
    },
  },
  {
    say: "Here are English captions for “Beach 2”: “Hello from the beach.”",
    calls: [
      ["list_assets", { q: "Beach 2" }],
      ["create_subtitle", { video_asset_id: "$0.items.0.id", language: "en", label: "English", file: HELLO }],
    ],
    async outcome({ given, get }) {
      expect((await get(`/api/v1/assets/${given.beach[1]}/transcript`)).text).toContain("Hello from the beach.");
    },
  },
  {
    say: "Add chapters to the harbour tour: the quay at 0:00, the lighthouse at 1:00",
    calls: [
      [
        "set_track",
        {
          video_asset_id: "$harbour",
          kind: "chapter",
          cues: [
            { start_ms: 0, end_ms: 60_000, payload: { title: "The quay" } },
            { start_ms: 60_000, end_ms: 150_000, payload: { title: "The lighthouse" } },
          ],
        },
      ],
    ],
    async outcome({ given, get }) {
      const { body } = await get(`/api/v1/assets/${given.harbour}/tracks?kind=chapter`);
      expect(body).toHaveLength(1);
      const found = await get("/api/v1/search?q=quay");
      expect(found.body).toMatchObject([{ asset_id: given.harbour, matches: [{ kind: "chapter" }] }]);
    },
  },
  {
    say: "Take the frame at 90 seconds as the thumbnail of the harbour tour",
    calls: [["set_poster", { id: "$harbour", time_seconds: 90 }]],
    async outcome({ given, get }) {
      expect((await ready(get, given.harbour)).poster_path).toEqual(expect.any(String));
    },
  },
  {
    say: "Share the harbour tour with the password “low tide” until Friday",
    calls: [["create_share", { id: "$harbour", name: "Guests", password: "low tide", expires_at: "$friday" }]],
    async outcome({ results, given }) {
      const { url, expires_at: until } = results[0]?.json ?? {};
      expect(Date.parse(until)).toBe(Date.parse(given.friday));
      const type = (password: string) =>
        fetch(url, {
          method: "POST",
          body: JSON.stringify({ password }),
          headers: { "content-type": "application/json" },
        });
      expect((await type("high tide")).status).toBe(403);
      expect((await type("low tide")).status).toBe(204);
    },
  },
  {
    say: "Stop sharing the harbour tour with the guests",
    calls: [
      ["list_shares", { id: "$harbour" }],
      ["delete_share", { id: "$harbour", share_id: "$0.items.0.id" }],
    ],
    async outcome({ given, get }) {
      expect((await get(`/api/v1/assets/${given.harbour}/shares`)).body).toEqual([]);
    },
  },
  {
    say: "How many people watched the harbour tour from Austria?",
    calls: [["get_asset_analytics", { id: "$harbour", details: "true" }]],
    outcome({ results }) {
      expect(results[0]?.json.countries).toContainEqual(expect.objectContaining({ country: "AT", play_count: 2 }));
    },
  },
  {
    say: "What were my most popular videos this month?",
    calls: [["get_analytics", { top: 5 }]],
    outcome({ results, given }) {
      expect(results[0]?.json.top_assets).toMatchObject([{ asset_id: given.harbour, play_count: 3 }]);
    },
  },
  {
    say: "What will this month cost?",
    calls: [["get_billing_estimate", {}]],
    outcome({ results }) {
      expect(results[0]?.json).toMatchObject({ currency: expect.stringMatching(/^[a-z]{3}$/i) });
    },
  },
  {
    say: "Rotate the API key of the CI",
    calls: [
      ["list_api_keys", {}],
      ["rotate_api_key", { id: "$0.items.1.id" }],
    ],
    async outcome({ results, get }) {
      expect(results[0]?.json.items[1]).toMatchObject({ name: "CI" });
      expect(results[1]?.json.token).toMatch(/^svc_/);
      const { body } = await get("/api/v1/api_keys");
      expect(body.filter(({ name }: { name: string }) => name === "CI")).toHaveLength(2);
    },
  },
  {
    say: "Which webhook deliveries failed? Send them again",
    calls: [
      ["list_webhooks", {}],
      ["list_deliveries", { id: "$0.items.0.id", status: "failed" }],
      ["resend_failed_deliveries", { id: "$0.items.0.id" }],
    ],
    async outcome({ results, given, get }) {
      expect(results[1]?.json.items.length).toBeGreaterThan(0);
      const [endpoint] = (await get("/api/v1/webhooks")).body;
      expect(endpoint.url).toBe(given.hook);
      await expect
        .poll(() => get(`/api/v1/webhooks/${endpoint.id}/deliveries?status=failed`).then(({ body }) => body))
        .toEqual([]);
    },
  },
  {
    say: "Set up a live stream “Town hall”",
    calls: [["create_channel", { channel: "town-hall", name: "Town hall", playback_policy: "public" }]],
    async outcome({ results, get }) {
      expect(results[0]?.json.stream_key).toEqual(expect.any(String));
      expect((await get("/api/v1/live/channels?channel=town-hall")).body).toMatchObject([{ name: "Town hall" }]);
    },
  },
  {
    say: "Replace the stream key of the town hall, it leaked",
    calls: [
      ["list_channels", { channel: "town-hall" }],
      ["rotate_stream_key", { id: "$0.items.0.id" }],
    ],
    outcome({ results }) {
      expect(results[1]?.json.stream_key).toEqual(expect.any(String));
    },
  },
  {
    say: "Only pages of www.example.com may embed my videos",
    calls: [["create_playback_restriction", { allowed_domains: ["www.example.com"] }]],
    async outcome({ get }) {
      expect((await get("/api/v1/playback_restrictions")).body).toMatchObject([
        { allowed_domains: ["www.example.com"] },
      ]);
    },
  },
  {
    say: "Offer the harbour tour as an MP4 file to download",
    calls: [["create_static_rendition", { id: "$harbour", name: "highest" }]],
    async outcome({ given, get }) {
      const { body } = await get(`/api/v1/assets/${given.harbour}/static_renditions`);
      expect(body).toMatchObject([{ name: "highest" }]);
    },
  },
  {
    say: "Forget everything about the viewer guest-7",
    calls: [["erase_viewer", { viewer_id: "guest-7" }]],
    async outcome({ results, get }) {
      expect(results[0]?.json).toMatchObject({ session_count: 1 });
      expect((await get("/api/v1/analytics/viewers/guest-7")).text).not.toContain("session_id");
    },
  },
];
