import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { call } from "./processes.ts";

export type Attacker = { base: string; key: string; tenantId: number; assetId: number };
/** One attack; its own failures are expected and ignored. */
export type Attack = { name: string; run(n: number): Promise<unknown> };

const STALL_MS = 20_000;
const MAX_DOCUMENT_BYTES = 1_900_000;
const IMPORT_ROWS = 20_000;
const SLOW_ENDPOINTS = 100;

const mpd = (period: string) =>
  `<MPD type="static" mediaPresentationDuration="PT9S"><Period><AdaptationSet>${period}</AdaptationSet></Period></MPD>`;

/** Documents that once blocked or crashed the server, by object key. */
const documents: Record<string, string> = {
  "endless.mpd": mpd('<SegmentTemplate media="../../$Number$" endNumber="999999999999999"/><Representation id="1"/>'),
  "wide.mpd": mpd(
    `<SegmentTemplate media="${"x".repeat(40_000)}$Number$"><SegmentTimeline>${'<S d="1"/>'.repeat(50_000)}</SegmentTimeline></SegmentTemplate><Representation id="1"/>`,
  ),
  "deep.mpd": `${"<a>".repeat(300_000)}${"</a>".repeat(300_000)}`,
  "attributes.m3u8": `#EXTM3U\n#EXT-X-STREAM-INF:${"A".repeat(MAX_DOCUMENT_BYTES)}\nlow.m3u8\n`,
  "quotes.m3u8": `#EXTM3U\n#EXT-X-MEDIA:${'A="'.repeat(MAX_DOCUMENT_BYTES / 3)}\n`,
  "segments.m3u8": `#EXTM3U\n${"#EXTINF:1,\n../../x\n".repeat(100_000)}`,
};
const storyboard = `WEBVTT\n\n${"a".repeat(MAX_DOCUMENT_BYTES)}`;
const captions = (n: number) =>
  `WEBVTT\n\n${Array.from({ length: 20_000 }, (_, i) => `00:${String(Math.floor(i / 600) % 60).padStart(2, "0")}:${String(Math.floor(i / 10) % 60).padStart(2, "0")}.${i % 10}00 --> 00:59:59.000\n<b><i><c.${n}>${"word ".repeat(10)}`).join("\n\n")}`;

/** Every attack of one tenant on others that the audit found, in rotation. `stop` closes its servers. */
export async function attacksOf({ base, key, tenantId, assetId }: Attacker): Promise<{ all: Attack[]; stop(): void }> {
  const headers = { "x-api-key": key };
  const ask = (method: string, path: string, body?: unknown) => call<any>(base, method, path, body, headers);
  // A source that sends a byte a second, and receivers that never respond.
  const slow = createServer((incoming, response) => {
    incoming.resume();
    if (incoming.method !== "GET") return;
    response.writeHead(200, { "content-type": "video/mp4", "content-length": "1000000" });
    const drip = setInterval(() => response.write("x"), 1000);
    response.on("close", () => clearInterval(drip));
  });
  await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve));
  const away = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
  for (let n = 0; n < SLOW_ENDPOINTS; n++)
    await ask("POST", "/api/v1/webhooks", { tenant_id: tenantId, url: `${away}/hook/${n}` });
  const endpoints = await ask("GET", "/api/v1/webhooks");

  const { id: batch } = await ask("POST", "/api/v1/ingest_batches", { tenant_id: tenantId });
  const batchPath = `/api/v1/ingest_batches/${batch}`;
  for (const [object_key, text] of [...Object.entries(documents), ["board.vtt", storyboard] as const]) {
    const bytes = Buffer.byteLength(text);
    const batchUpload = await ask("POST", `${batchPath}/uploads`, {
      object_key,
      bytes_expected: bytes,
      content_type: "text/plain",
    });
    await fetch(batchUpload.upload_url, {
      method: batchUpload.upload_method ?? "PUT",
      headers: batchUpload.upload_headers,
      body: text,
    });
    await ask("POST", `${batchPath}/uploads/${batchUpload.id}/complete`, { bytes_received: bytes });
  }
  const preview = (fields: Record<string, unknown>) =>
    ask("POST", `${batchPath}/manifest/preview`, {
      assets: [{ title: "x", original_filename: "x", relative_path: "x", duration_seconds: 1, ...fields }],
    });
  const upload = (n: number) => {
    const form = new FormData();
    form.set("language", ["en", "de", "fr", "es"][n % 4] as string);
    form.set("file", new Blob([captions(n)], { type: "text/vtt" }), "captions.vtt");
    return fetch(`${base}/api/v1/assets/${assetId}/subtitles`, { method: "POST", headers, body: form });
  };
  const rows = Array.from({ length: IMPORT_ROWS }, (_, n) => `t${n},d,,bench-${n}.mp4`).join("\n");
  const importing = (text: string) => {
    const form = new FormData();
    form.set("tenant_id", String(tenantId));
    form.set("file", new Blob([`title,description,tags,original_filename\n${text}`], { type: "text/csv" }), "a.csv");
    return fetch(`${base}/api/v1/assets/import`, { method: "POST", headers, body: form });
  };
  /** Announces a body and never finishes it. */
  const stall = (method: string, path: string, type: string) =>
    new Promise<void>((resolve) => {
      const one = request(`${base}${path}`, {
        method,
        headers: { ...headers, "content-type": type, "content-length": "1000000" },
      });
      const timer = setTimeout(() => one.destroy(), STALL_MS);
      one.once("close", () => {
        clearTimeout(timer);
        resolve();
      });
      one.once("error", () => {});
      one.once("response", (response) => response.resume());
      one.write("{");
    });
  const all: Attack[] = [
    ...Object.keys(documents).map((name) => ({
      name: `preview of ${name}`,
      run: () =>
        preview(
          name.endsWith(".mpd")
            ? { hls: { manifest_path: "attributes.m3u8" }, dash: { manifest_path: name } }
            : { hls: { manifest_path: name } },
        ),
    })),
    {
      name: "commit of them",
      run: () =>
        ask("POST", `${batchPath}/manifest/commit`, {
          assets: [
            {
              title: "x",
              original_filename: "x",
              relative_path: "x",
              duration_seconds: 1,
              hls: { manifest_path: "quotes.m3u8" },
              storyboard_path: "board.vtt",
            },
          ],
        }),
    },
    { name: "subtitles", run: upload },
    {
      name: "sync",
      run: async () => {
        const [one, other] = await ask("GET", `/api/v1/assets/${assetId}/subtitles`);
        await ask("POST", `/api/v1/assets/${assetId}/subtitles/${one.id}/sync`, { reference_id: other.id });
      },
    },
    { name: "import", run: () => importing(rows) },
    { name: "import of one cell", run: () => importing(`"${'"",'.repeat(MAX_DOCUMENT_BYTES / 3)}`) },
    { name: "stalled import", run: () => stall("POST", "/api/v1/assets/import", "multipart/form-data; boundary=x") },
    { name: "stalled JSON", run: () => stall("POST", "/api/v1/uploads/initiate", "application/json") },
    { name: "stalled beacon", run: () => stall("POST", "/api/v1/playback_events", "application/json") },
    {
      name: "slow source",
      run: (n) => ask("POST", "/api/v1/uploads/from_url", { tenant_id: tenantId, url: `${away}/${n}.mp4` }),
    },
    { name: "export", run: () => fetch(`${base}/api/v1/assets/export?tenant_id=${tenantId}`, { headers }) },
    { name: "graph export", run: () => fetch(`${base}/api/v1/assets/graph_export`, { headers }) },
    {
      name: "images",
      run: (n) =>
        Promise.all(
          Array.from({ length: 10 }, (_, i) =>
            fetch(
              `${base}/media/${assetId}/thumbnail.webp?time=${((n * 10 + i) % 40) / 10}&width=${100 + ((n * 7 + i) % 300)}`,
            ),
          ),
        ),
    },
    {
      name: "animation",
      run: (n) => fetch(`${base}/media/${assetId}/animated.gif?start=0&end=4&width=${200 + (n % 200)}`),
    },
    {
      name: "beacons",
      run: (n) =>
        Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            call(
              base,
              "POST",
              "/api/v1/playback_events",
              {
                events: Array.from({ length: 64 }, (_, j) => ({
                  asset_id: assetId + 1 + ((n * 31 + i * 7 + j) % 100_000),
                  session_id: `s${n}-${i}-${j}`,
                  event: "play",
                })),
              },
              {},
            ),
          ),
        ),
    },
    {
      name: "reserved bytes",
      run: (n) =>
        ask("POST", "/api/v1/uploads/initiate", {
          tenant_id: tenantId,
          filename: `${n}.mp4`,
          bytes_expected: 60 * 2 ** 30,
        }),
    },
    {
      name: "slow receivers",
      run: (n) => ask("POST", `/api/v1/webhooks/${endpoints[n % endpoints.length].id}/test`),
    },
  ];
  return {
    all,
    stop() {
      slow.closeAllConnections();
      slow.close();
    },
  };
}

/** Starts `perSecond` attacks in rotation, at most `atOnce` concurrently; counts responses by attack. */
export async function attackOn(
  attacks: readonly Attack[],
  { goesOn, perSecond, atOnce }: { goesOn: () => boolean; perSecond: number; atOnce: number },
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const under = new Set<Promise<void>>();
  const begin = performance.now();
  for (let n = 0; goesOn(); n++) {
    const attack = attacks[n % attacks.length] as Attack;
    if (under.size < atOnce) {
      const one: Promise<void> = attack
        .run(Math.floor(n / attacks.length))
        .then(async (answer) => void (answer instanceof Response && (await answer.arrayBuffer())))
        .catch(() => {})
        .finally(() => under.delete(one));
      under.add(one);
      counts.set(attack.name, (counts.get(attack.name) ?? 0) + 1);
    }
    await sleep(Math.max(0, begin + ((n + 1) * 1000) / perSecond - performance.now()));
  }
  await Promise.race([Promise.all(under), sleep(STALL_MS)]);
  return counts;
}
