import { request as httpRequest } from "node:http";
import { expect, test } from "vitest";
import { EXPENSIVE } from "#platform/limits/expensive.ts";
import { testApp } from "#test/support/app.ts";
import type { Call } from "#test/support/client.ts";
import { until } from "#test/support/descendants.ts";
import { newFolder } from "#test/support/folder.ts";
import { startServer } from "#test/support/process.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { KEY, translationService } from "#test/support/translation-services.ts";
import { typedClient } from "#test/support/typed-client.ts";

/** Last path segments of expensive operations. */
const COSTLY = /\/(preview|commit|sync|translate|export|graph_export|import|clips)$/;

test("every expensive route declares its queue, which the document shows", async () => {
  const app = await testApp();
  const { routes } = app.opened;
  const costly = routes.filter(({ path }) => COSTLY.test(path));
  expect(costly.length).toBeGreaterThanOrEqual(7);
  expect(costly.filter(({ expensive }) => expensive === undefined).map(({ path }) => path)).toEqual([]);
  const document = (await app.call("GET", "/api/v1/openapi.json")).body;
  for (const { method, path, expensive } of routes) {
    if (expensive === undefined) continue;
    const { responses } = document.paths[path.replaceAll(/:(\w+)/g, "{$1}")][method.toLowerCase()];
    for (const status of [429, 503])
      expect(responses[status]?.headers, `${path} ${status}`).toHaveProperty("Retry-After");
    expect(responses[503].description, path).toContain("busy");
  }
});

/** Where a new track is translated. */
async function trackOf(call: Call, key: string): Promise<string> {
  const body = { filename: "a.mp4", bytes_expected: 1 };
  const { asset_id: id } = (await typedClient(call)(key).initiateUpload(body)).body;
  return `/api/v1/assets/${id}/subtitles/${(await subtitled({ call }, key, id)).id}/translate`;
}

async function translator() {
  const service = await translationService("libretranslate");
  const started: (() => void)[] = [];
  for (let n = 0; n < 500; n++)
    service.mischief.push((response, texts) =>
      started.push(() => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ translatedText: texts }));
      }),
    );
  return { ...service, started };
}

test("queued operations of one tenant do not delay another's, and are refused beyond the limit", async () => {
  const service = await translator();
  const app = await testApp({
    translate: "libretranslate",
    translate_url: service.url,
    translate_key: KEY,
    rate_limit_translate: "1000/60",
    translate_timeout_seconds: 60,
  });
  const ask = async () => {
    const { id } = await app.tenant();
    const key = await app.key(id);
    const path = await trackOf(app.call, key);
    return (language: string) => app.call("POST", path, { key, body: { target_language: language } });
  };
  const { perOwner, waitingPerOwner } = EXPENSIVE.translate;
  const hostile = await ask();
  const normal = await ask();
  const many = Array.from({ length: perOwner + waitingPerOwner + 5 }, () => hostile("de"));
  const all = Promise.all(many);
  await until("the places are taken", () => service.started.length >= perOwner);
  const theirs = normal("de");
  await until("the other tenant's operation", () => service.started.length > perOwner);
  expect(service.started.length).toBe(perOwner + 1);
  service.started.pop()?.();
  expect((await theirs).status).toBe(201);
  const released = setInterval(() => {
    for (const end of service.started.splice(0)) end();
  });
  const answers = await all;
  clearInterval(released);
  const refused = answers.filter(({ status }) => status === 429);
  expect(refused).toHaveLength(5);
  for (const { body, headers } of refused)
    expect([body.code, headers.get("retry-after")]).toEqual(["rate_limited", "2"]);
});

test("a client that disconnects leaves the queue", async () => {
  const service = await translator();
  const server = await startServer(newFolder(), {
    env: {
      VODBOX_TRANSLATE: "libretranslate",
      VODBOX_TRANSLATE_URL: service.url,
      VODBOX_TRANSLATE_KEY: KEY,
      VODBOX_RATE_LIMIT_TRANSLATE: "1000/60",
      VODBOX_TRANSLATE_TIMEOUT_SECONDS: "60",
    },
  });
  const { admin, as, call, base } = server;
  const tenant = (await as({ admin }).createTenant({ name: "a", slug: "a" })).body;
  const body = { tenant_id: tenant.id, scopes: ["assets:write", "assets:read"] };
  const key = (await as({ admin }).createApiKey(body)).body.token;
  const path = await trackOf(call, key);
  const { perOwner, waitingPerOwner } = EXPENSIVE.translate;
  const requests = Array.from({ length: perOwner + waitingPerOwner }, () => {
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const request = httpRequest(`${base}${path}`, { method: "POST", headers, agent: false });
    request.on("error", () => {});
    request.end(JSON.stringify({ target_language: "de" }));
    return request;
  });
  await until("the places are taken", () => service.started.length === perOwner);
  const options = { key, body: { target_language: "de" } };
  const isFull = async () => {
    const headers = { "x-api-key": key, "content-type": "application/json" };
    // A request that waits in the queue is not answered.
    const signal = AbortSignal.timeout(1000);
    const init = { method: "POST", headers, body: JSON.stringify(options.body), signal };
    return fetch(`${base}${path}`, init).then(
      ({ status }) => status === 429,
      () => false,
    );
  };
  await until("all wait", isFull);
  for (const request of requests) request.destroy();
  // The places become free when the server sees the closed connections, which can be after the next requests arrive.
  let refused = 0;
  const persist = async () => {
    let response = await call("POST", path, options);
    for (; response.status === 429; response = await call("POST", path, options)) refused++;
    return response;
  };
  let isOver = false;
  const again = Promise.all(Array.from({ length: perOwner + waitingPerOwner }, persist));
  again.finally(() => {
    isOver = true;
  });
  await until("these have taken all places", async () => {
    const before = refused;
    return (await isFull()) && (await isFull()) && refused === before;
  });
  let translated = 0;
  await until("all are done", () => {
    for (const end of service.started.splice(0)) {
      translated++;
      end();
    }
    return isOver;
  });
  for (const { status } of await again) expect(status).toBe(201);
  // The running operations of the closed connections had started before; the waiting ones never did.
  expect(translated).toBe(perOwner + perOwner + waitingPerOwner);
});
