import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { Agent, get } from "node:https";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import { client } from "#test/support/client.ts";
import { json, refused } from "#test/support/commands/outcome.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { lineOf, run, startServer, stopCleanly } from "#test/support/process.ts";
import { startRelay } from "#test/support/relay.ts";

/** Many times the duration on a quiet machine, which is 3 s. */
const LIMIT_MS = 240_000;

function certificate(folder: string, name: string) {
  const cert = join(folder, `${name}.crt`);
  const key = join(folder, `${name}.key`);
  const subject = ["-subj", "/CN=vodbox test", "-addext", "subjectAltName=IP:127.0.0.1"];
  const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", ...kind, "-keyout", key, "-out", cert, ...subject], { stdio: "pipe" });
  return { cert, key };
}

const ask = (url: string, agent: Agent) =>
  new Promise<{ status: number; fingerprint: string; socket: TLSSocket }>((resolve, reject) => {
    get(url, { agent }, (response) => {
      const socket = response.socket as TLSSocket;
      response.resume().once("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          fingerprint: socket.getPeerCertificate().fingerprint256,
          socket,
        }),
      );
    }).once("error", reject);
  });

test("TLS: push, a local worker, a new certificate without interruption, an invalid one refused", {
  timeout: 600_000,
}, async () => {
  const folder = emptyFolder();
  const first = certificate(folder, "first");
  const second = certificate(folder, "second");
  const cert = join(folder, "tls.crt");
  const key = join(folder, "tls.key");
  const use = (pair: { cert: string; key: string }) => {
    copyFileSync(pair.cert, cert);
    copyFileSync(pair.key, key);
  };
  use(first);
  const tls = ["--tls-cert", cert, "--tls-key", key];
  expect(await refused(["serve", "--data", emptyFolder(), "--tls-cert", cert], 2)).toContain("VODBOX_TLS_KEY");
  expect(
    await refused(["serve", "--data", emptyFolder(), "--port", "0", "--tls-cert", cert, "--tls-key", second.key], 1),
  ).toContain("cannot be used together");

  const server = await startServer(emptyFolder(), { args: [...tls, "--workers", "1"] });
  expect(server.base).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  const env = { VODBOX_ADMIN_TOKEN: server.admin, VODBOX_LOG_LEVEL: "error" };
  await json(["admin", "tenant", "create", "--name", "T", "--slug", "t", "--data", server.dataDir], { env });
  const issued = await json(
    ["admin", "key", "issue", "--tenant", "t", "--scopes", "assets:read,assets:write", "--data", server.dataDir],
    { env },
  );
  const clip = join(folder, "clip.mp4");
  await ffmpeg(...picture("160x90", "25", 1), ...fast, clip);
  const pushed = await run(["push", clip, "--server", server.base], {
    env: { VODBOX_KEY: issued.token, NODE_EXTRA_CA_CERTS: cert, VODBOX_CACHE_DIR: emptyFolder() },
  });
  expect(pushed.code, pushed.stderr).toBe(0);
  // A client that does not trust the certificate gets an error with what to do, without Node's own flags.
  const strange = { VODBOX_KEY: issued.token, VODBOX_CACHE_DIR: emptyFolder(), ...env };
  for (const args of [
    ["push", clip, "--server", server.base],
    ["worker", "--server", server.base, "--token", server.worker, "--once"],
    ["demo", "--server", server.base, "--data", server.dataDir],
  ]) {
    const told = await refused(args, 1, { env: strange });
    expect(told).toContain("NODE_EXTRA_CA_CERTS");
    expect(told).not.toContain("use-system-ca");
  }
  const local = client(JSON.parse(readFileSync(join(server.dataDir, "server.json"), "utf8")).address);
  await until(
    "a video",
    async () => {
      const [asset] = (await local("GET", "/api/v1/assets", { key: issued.token })).body;
      return asset?.playback_status === "ready" ? asset : null;
    },
    LIMIT_MS,
  );

  const ca = [readFileSync(first.cert), readFileSync(second.cert)];
  const kept = new Agent({ keepAlive: true, maxSockets: 1, ca });
  // Each on its own connection, without a session to resume.
  const fresh = () => ask(`${server.base}/healthz`, new Agent({ ca, maxCachedSessions: 0 }));
  const before = await ask(`${server.base}/healthz`, kept);
  use(second);
  const after = await until(
    "the new certificate",
    async () => {
      const answer = await fresh();
      return answer.fingerprint === before.fingerprint ? null : answer;
    },
    LIMIT_MS,
  );
  const again = await ask(`${server.base}/healthz`, kept);
  expect([again.status, again.socket === before.socket, again.fingerprint]).toEqual([200, true, before.fingerprint]);
  writeFileSync(key, "no key at all");
  await until("a word on the broken key", async () => server.stderr().includes("the old one remains in use"), LIMIT_MS);
  expect(await fresh()).toMatchObject({ status: 200, fingerprint: after.fingerprint });
  kept.destroy();
  await stopCleanly(server);
});

test("TLS: the demo's upload is complete although its connection is opened late", { timeout: 600_000 }, async () => {
  const { cert, key } = certificate(emptyFolder(), "demo");
  // Uploads use another URL than the one that the demo was given.
  const door = await startRelay();
  const base = door.base.replace("http:", "https:");
  const server = await startServer(emptyFolder(), {
    args: ["--tls-cert", cert, "--tls-key", key, "--base-url", base, "--workers", "1"],
  });
  const [, address = ""] = await lineOf(server, /^listening on (\S+)$/m);
  door.lead(Number(new URL(address).port));
  const demo = await run(["demo", "--server", address, "--data", server.dataDir, "--seconds", "2"], {
    env: { VODBOX_ADMIN_TOKEN: server.admin, NODE_EXTRA_CA_CERTS: cert },
  });
  expect(demo.code, demo.stderr).toBe(0);
  expect(demo.stdout).toContain(`${address}/watch/`);
});
