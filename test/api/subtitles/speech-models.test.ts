import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { configuredTranscriber } from "#platform/outbound/transcribe/configured.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { serverModels } from "#worker/speech-models.ts";

const BASE = "/api/v1/worker/speech_models";
const SELECTED = `${BASE}/selected`;
const sum = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
const bytes = Buffer.alloc(100_000, "model");
const other = Buffer.alloc(50_000, "other");

let app: TestApp;
beforeEach(async () => {
  app = await testApp({ transcribe: "whisper" });
});
const folder = () => join(app.opened.app.config.data_dir, "whisper");

function installed(name: string, content: Buffer): string {
  mkdirSync(folder(), { recursive: true });
  const path = join(folder(), `${name}@${sum(content)}.bin`);
  writeFileSync(path, content);
  return path;
}

describe("the routes of workers", () => {
  test("name the selected model, and serve it by its checksum", async () => {
    installed("small", bytes);
    const worker = app.worker;
    const { body } = await app.as({ worker }).getSpeechModel();
    expect(body).toEqual({ name: "small", bytes: bytes.length, sha256: sum(bytes), url: `${BASE}/${sum(bytes)}` });
    const range = { range: "bytes=99990-" };
    const part = await app.call("GET", body.url, { worker, headers: range });
    expect([part.status, part.headers.get("content-range")]).toEqual([206, "bytes 99990-99999/100000"]);
    expect(part.text).toBe(bytes.subarray(99_990).toString());
    expectError(
      await app.call("GET", body.url, { worker, headers: { range: "bytes=100000-" } }),
      416,
      "range_not_satisfiable",
    );
  });

  test("serve nothing else", async () => {
    installed("small", bytes);
    const { worker } = app;
    expectError(await app.as({ worker }).downloadSpeechModel(sum(other)), 404, "not_found");
    expect((await app.as({ worker }).downloadSpeechModel("../../vodbox.db")).status).toBe(404);
    const key = await app.key((await app.tenant()).id);
    for (const path of [SELECTED, `${BASE}/${sum(bytes)}`]) {
      expect((await app.call("GET", path)).status).toBe(401);
      expect((await app.call("GET", path, { key })).status).toBe(401);
    }
  });

  test("say that none is installed", async () => {
    expectError(await app.as({ worker: app.worker }).getSpeechModel(), 503, "transcription_not_configured");
  });
});

test("the server has a transcriber once a model is installed, without a restart", async () => {
  const { config } = app.opened.app;
  expect(await configuredTranscriber(config)).toEqual({ transcriber: null, missing: ["whisper_model"] });
  const path = installed("small", bytes);
  expect((await configuredTranscriber(config)).transcriber).not.toBeNull();
  rmSync(path);
  expect((await configuredTranscriber(config)).transcriber).toBeNull();
});

describe("a worker on another machine", () => {
  let http: Server;
  let requests: string[];
  let cut: boolean;
  beforeAll(async () => {
    http = createServer(async (incoming, outgoing) => {
      const { range } = incoming.headers;
      requests.push(`${incoming.url?.slice(BASE.length + 1, BASE.length + 9)}${range ? ` ${range}` : ""}`);
      const headers = new Headers({
        "x-svc-worker-token": String(incoming.headers["x-svc-worker-token"]),
        ...(range && { range }),
      });
      const answer = await app.opened.server.fetch(new Request(`http://vodbox.test${incoming.url}`, { headers }));
      const body = Buffer.from(await answer.arrayBuffer());
      outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
      if (cut && incoming.url !== SELECTED) {
        cut = false;
        outgoing.write(body.subarray(0, 60_000), () => setImmediate(() => setImmediate(() => outgoing.destroy())));
      } else outgoing.end(body);
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => void http.close());
  beforeEach(() => {
    requests = [];
    cut = false;
  });
  const { signal } = new AbortController();
  const modelsIn = (scratchDir: string, token = app.worker) => {
    const server = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
    return serverModels({ server, token: () => token, scratchDir, minFreeBytes: 0 });
  };

  test("downloads the model once, for all of its jobs", async () => {
    installed("small", bytes);
    const models = modelsIn(emptyFolder());
    const paths = await Promise.all([models.whisper(signal), models.whisper(signal), models.whisper(signal)]);
    expect(new Set(paths).size).toBe(1);
    expect(readFileSync(paths[0] as string).equals(bytes)).toBe(true);
    expect(requests.filter((each) => each === sum(bytes).slice(0, 8))).toHaveLength(1);
  });

  test("continues an interrupted download", async () => {
    installed("small", bytes);
    cut = true;
    const path = await modelsIn(emptyFolder()).whisper(signal);
    expect(readFileSync(path as string).equals(bytes)).toBe(true);
  });

  test("uses another model from the next job on, and keeps only that one", async () => {
    installed("small", bytes);
    const scratch = emptyFolder();
    const models = modelsIn(scratch);
    const first = (await models.whisper(signal)) as string;
    rmSync(folder(), { recursive: true });
    installed("small", other);
    const second = (await models.whisper(signal)) as string;
    expect(readFileSync(second).equals(other)).toBe(true);
    expect(second).not.toBe(first);
    expect(readdirSync(join(scratch, "whisper"))).toEqual([`${sum(other)}.bin`]);
  });

  test("learns that there is none, and that the server's file is damaged", async () => {
    expect(await modelsIn(emptyFolder()).whisper(signal)).toBeNull();
    writeFileSync(installed("small", bytes), Buffer.alloc(bytes.length));
    await expect(modelsIn(emptyFolder()).whisper(signal)).rejects.toThrow("could not be downloaded from the server");
  });
});
