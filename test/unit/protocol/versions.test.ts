import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { encodingSpec } from "#media/encoding-spec.ts";
import * as server from "#protocol/contract.ts";
import { EncodingSpec } from "#protocol/encoding-spec.ts";
import * as worker from "#protocol/worker-client.ts";

/** As this version of the server writes it, with every field. */
const contract: v.InferInput<typeof server.WorkerContract> = {
  schema_version: 1,
  job: { id: 3, asset_id: 42, attempt: 1, profile: "default" },
  lease: { token: "t", expires_at: "2026-05-04T00:00:00.000Z", heartbeat_interval_seconds: 15 },
  source: {
    url: "https://storage.example/source",
    method: "GET",
    headers: { "x-signed": "1" },
    bytes: 1000,
    content_type: "video/mp4",
    local_path: null,
    sha256: null,
  },
  outputs: {
    prefix: "tenants/7/assets/42/3-9/",
    manifest_path: "tenants/7/assets/42/3-9/master.m3u8",
    dash_manifest_path: null,
    thumbnail_path: null,
    storyboard_path: null,
    mp4_path: null,
    subtitle_paths: { en: "tenants/7/assets/42/3-9/captions/en.vtt" },
    words_paths: { en: "tenants/7/assets/42/3-9/captions/en.words.json" },
    captions_required: true,
    separate_captions: true,
    read_closed_captions: true,
    read_text_tracks: true,
  },
  artifacts: { sign_url: "https://video.example/artifacts", local_path: null },
  encoding_spec: { ...encodingSpec },
  callbacks: {
    heartbeat_url: "https://video.example/heartbeat",
    complete_url: "https://video.example/complete",
    fail_url: "https://video.example/fail",
    release_url: "https://video.example/release",
    publish_url: "https://video.example/publish",
  },
  early_playback: true,
};

/** The same with a field that no version has, in every object. */
function extended(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(extended);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]) => [name, extended(inner)]);
  return { ...Object.fromEntries(entries), from_the_future: "yes" };
}

describe("a worker", () => {
  test("reads every field of a contract that this server writes", () => {
    expect(v.parse(server.WorkerContract, contract)).toEqual(contract);
    expect(v.parse(worker.WorkerContract, contract)).toEqual(contract);
  });

  test("ignores the fields of a newer server", () => {
    const { subtitle_paths, words_paths } = contract.outputs;
    const newer = extended({ ...contract, source: { ...contract.source, headers: {} } }) as typeof contract;
    Object.assign(newer.outputs, { subtitle_paths, words_paths });
    const read = v.parse(worker.WorkerContract, newer);
    expect(read.job).toEqual(contract.job);
    expect(read.callbacks).toEqual(contract.callbacks);
    expect(read.outputs).toEqual(contract.outputs);
    const answer = { status: "paused", lease_expires_at: null, cancel_requested: false };
    expect(v.parse(worker.HeartbeatAnswer, extended(answer))).toEqual(answer);
    const signed = { path: "a", url: "https://storage.example/a", method: "PUT", headers: {} };
    expect(v.parse(worker.SignedArtifacts, [{ ...signed, from_the_future: 1 }])).toEqual([signed]);
  });

  test("reads the contract of an older server, without the fields that it can do without", () => {
    const { job, lease, source, outputs, artifacts, callbacks } = contract;
    const older = {
      schema_version: 1,
      job: { id: job.id, asset_id: job.asset_id, attempt: job.attempt },
      lease: { ...lease, expires_at: "soon" },
      source: { url: source.url },
      outputs: { prefix: outputs.prefix, manifest_path: outputs.manifest_path },
      artifacts: { sign_url: artifacts.sign_url },
      callbacks: { ...callbacks, publish_url: undefined },
    };
    expect(v.parse(worker.WorkerContract, older)).toEqual({
      ...older,
      source: { url: source.url, method: "GET", headers: {} },
      early_playback: false,
    });
    expect(v.parse(worker.HeartbeatAnswer, { status: "running" })).toEqual({
      status: "running",
      cancel_requested: false,
    });
    expect(v.parse(worker.SignedArtifacts, [{ path: "a", url: "b" }])).toEqual([
      { path: "a", url: "b", method: "PUT", headers: {} },
    ]);
  });

  test.each([
    ["without a lease", { lease: null }],
    ["of another schema version", { schema_version: 2 }],
    ["without a heartbeat interval", { lease: { ...contract.lease, heartbeat_interval_seconds: 0 } }],
    ["with an absolute prefix", { outputs: { ...contract.outputs, prefix: "/tenants/7/" } }],
    ["with a prefix that is no directory", { outputs: { ...contract.outputs, prefix: "tenants/7" } }],
    ["without callbacks", { callbacks: {} }],
  ])("refuses a contract %s", (_, change) => {
    expect(v.safeParse(worker.WorkerContract, { ...contract, ...change }).success).toBe(false);
  });
});

test("a desktop client supports every field of the encoding specification of this server", () => {
  expect(v.parse(EncodingSpec, encodingSpec)).toEqual(encodingSpec);
});
