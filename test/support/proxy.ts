import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { type ClientRequest, type IncomingMessage, type RequestOptions, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestContext } from "vitest";
import { freePort } from "#scripts/free-port.ts";
import { emptyFolder } from "./folder.ts";
import { lineOf, type RunningServer, type Started, startServer, watched } from "./process.ts";

const shipped = (name: string) => readFileSync(join(import.meta.dirname, "../../docs/proxy", name), "utf8");

/** Each replacement must find its text: otherwise the test would not run the shipped file. */
function adapted(text: string, replacements: readonly [from: string, to: string][]): string {
  return replacements.reduce((all, [from, to]) => {
    if (all.split(from).length !== 2) throw new Error(`The file does not hold once: ${from}`);
    return all.replace(from, () => to);
  }, text);
}

type Where = { port: number; vodbox: string; folder: string; path: string };
export type Proxying = Started & { /** Directory in which the proxy would buffer bodies. */ temp: string };

/** nginx with `docs/proxy/nginx.conf` below `path`. */
async function startNginx({ port, vodbox, folder, path }: Where): Promise<Proxying> {
  const server = adapted(shipped("nginx.conf"), [
    ["server 127.0.0.1:8080;", `server ${vodbox};`],
    ["\n  listen 80;", `\n  listen 127.0.0.1:${port};`],
    ["location / {", `location ${path}/ {`],
    ["proxy_pass http://vodbox;", "proxy_pass http://vodbox/;"],
  ]);
  const temp = join(folder, "temp");
  mkdirSync(temp);
  const temps = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (each) => `${each}_temp_path ${temp}/${each};`,
  );
  const user = process.geteuid?.() === 0 ? "user root;" : "";
  const around = `${user} master_process off; daemon off; pid ${folder}/nginx.pid; error_log stderr;
events {}
http { ${temps.join(" ")}
${server}
}
`;
  writeFileSync(join(folder, "nginx.conf"), around);
  const args = ["-e", "stderr", "-p", folder, "-c", join(folder, "nginx.conf")];
  // Debian's path for it, which is not on everyone's PATH.
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };
  const nginx = watched(spawn("nginx", args, { env, stdio: ["ignore", "pipe", "pipe"] }));
  await untilListening(port, nginx);
  return { ...nginx, temp };
}

/** Caddy with `docs/proxy/Caddyfile` below `path`. */
async function startCaddy({ port, vodbox, folder, path }: Where): Promise<Proxying> {
  const site = adapted(shipped("Caddyfile"), [
    ["\nvideo.example.com {", `\nhttp://127.0.0.1:${port} {`],
    ["reverse_proxy 127.0.0.1:8080", `reverse_proxy ${vodbox}`],
    ["\thandle {", `\thandle_path ${path}/* {`],
  ]);
  const file = join(folder, "Caddyfile");
  writeFileSync(file, `{\n\tadmin off\n\tauto_https off\n}\n${site}`);
  const env = { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const args = ["run", "--config", file, "--adapter", "caddyfile"];
  const caddy = watched(spawn("caddy", args, { env, stdio: ["ignore", "pipe", "pipe"] }));
  await untilListening(port, caddy);
  return { ...caddy, temp: folder };
}

const PROXIES = { nginx: startNginx, caddy: startCaddy };
export type ProxyName = keyof typeof PROXIES;
export const PROXY_NAMES = Object.keys(PROXIES) as ProxyName[];

/** scripts/test.sh installs nginx. */
export function skipWithoutProxy(name: ProxyName, { skip }: Pick<TestContext, "skip">): void {
  if (name === "caddy" && spawnSync(name, ["version"]).error)
    skip("Caddy is not installed (apt install caddy): docs/proxy/Caddyfile is not tested.");
}

/** A server behind a proxy with the documented configuration, below a path. `base` of the server is the proxy's URL. */
export async function startBehind(
  name: ProxyName,
  env: Record<string, string> = {},
): Promise<{ server: RunningServer; proxy: Proxying }> {
  const where = { port: await freePort(), folder: emptyFolder(), path: "/video" };
  const server = await startServer(emptyFolder(), {
    env: {
      VODBOX_BASE_URL: `http://127.0.0.1:${where.port}${where.path}`,
      VODBOX_TRUSTED_PROXIES: "127.0.0.1/32",
      ...env,
    },
  });
  const [, vodbox = ""] = await lineOf(server, /^listening on http:\/\/(\S+)$/m);
  return { server, proxy: await PROXIES[name]({ ...where, vodbox }) };
}

async function untilListening(port: number, { child, stderr }: Started): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`The proxy ended:\n${stderr()}`);
    const isUp = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).once("error", () => resolve(false));
      socket.unref().once("connect", () => socket.destroy());
    });
    if (isUp) return;
    await sleep(20);
  }
}

type Received = { status: number; headers: IncomingMessage["headers"]; body: Buffer };

/** A request with a manually written body, from a chosen loopback address. */
export function opened(url: string, options: RequestOptions): { sending: ClientRequest; answer: Promise<Received> } {
  const sending = request(url, { agent: false, ...options });
  const answer = new Promise<Received>((resolve, reject) => {
    sending.once("error", reject).once("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk)).once("error", reject);
      response.once("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      );
    });
  });
  return { sending, answer };
}
