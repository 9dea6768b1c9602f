import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { own, paths } from "#scripts/build/paths.ts";
import { clientPackage, installedClients } from "#test/support/clients.ts";
import { removeFolder } from "#test/support/folder.ts";

let folder: string;
beforeAll(async () => {
  folder = await installedClients("client", "react", "vue");
});
afterAll(() => removeFolder(folder));

/** Errors of the compiler for each of some programs of a user, as `line code`. */
function errorsOf(programs: readonly string[], compilerOptions: Record<string, unknown>): string[][] {
  const files = programs.map((_, index) => `program-${index}.ts`);
  for (const [index, code] of programs.entries()) writeFileSync(join(folder, `program-${index}.ts`), code);
  const options = { strict: true, noEmit: true, target: "es2022", skipLibCheck: false, ...compilerOptions };
  const typeRoots = [join(paths.modules, "@types")];
  const config = { compilerOptions: { ...options, typeRoots }, files };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const { stdout } = spawnSync(join(paths.modules, ".bin/tsc"), ["--pretty", "false"], {
    cwd: folder,
    encoding: "utf8",
  });
  // Further lines of a message are indented.
  const errors = stdout.split("\n").filter((line) => /^\S/.test(line));
  const found = (line: string) => /^program-(\d+)\.ts\((\d+),\d+\): error (TS\d+)/.exec(line)?.slice(1);
  const elsewhere = errors.filter((line) => !found(line));
  return programs.map((_, index) => [
    ...elsewhere,
    ...errors.flatMap((line) => {
      const [program, at, code] = found(line) ?? [];
      return program === String(index) ? [`${at} ${code}`] : [];
    }),
  ]);
}

const PROGRAM = `import { signPlaybackToken, verifyWebhook, Vodbox, type Asset } from "@vodbox/client";
const vodbox = new Vodbox({ baseUrl: "https://video.example.com", apiKey: "svc_1" });
const asset: Asset = await vodbox.getAsset({ id: 1 });
const page: Asset[] = await vodbox.listAssets({ q: "x", playback_status: "ready" }, { timeoutMs: 5 });
for await (const { title } of vodbox.listAssets()) title.trim();
const nothing: undefined = await vodbox.deleteAsset({ id: asset.id });
await vodbox.createSubtitle({ video_asset_id: 1, body: { file: new Blob(["x"]), language: "en", label: "English" } });
await vodbox.setPoster({ id: 1, body: { time_seconds: 1 } });
await vodbox.setPoster({ id: 1, body: new Blob([], { type: "image/png" }) });
await vodbox.importAssets({ body: "title\\n" });
const job = await vodbox.claimJob();
if (job) job.job.id.toFixed();
const event = await verifyWebhook("{}", new Headers(), "whsec_");
if (event.type === "video.upload.completed") event.data.bytes_received.toFixed();
if (event.type === "video.asset.ready") event.data.playback_url?.trim();
await vodbox.upload(new Blob([]), { title: "x", captions: ["en"], onProgress: ({ bytesSent }) => bytesSent.toFixed() });
const token: string = await signPlaybackToken({ keyId: "sk_1", privateKey: "x", asset: 1, type: "thumbnail" });
export { nothing, page, token };
`;
const WRONG = `import { signPlaybackToken, Vodbox } from "@vodbox/client";
const vodbox = new Vodbox({ baseUrl: "https://video.example.com" });
await vodbox.getAsset({ id: "one" });
await vodbox.getAsset({});
await vodbox.getAsset();
await vodbox.listAssets({ playback_status: "done" });
await vodbox.listAssets({ colour: "red" });
await vodbox.updateAsset({ id: 1, body: { video_asset: { title: 5 } } });
await vodbox.initiateUpload({ body: { filename: "a.mp4" } });
(await vodbox.getAsset({ id: 1 })).titel;
await vodbox.upload(new Blob([]), { playback_policy: "secret" });
await signPlaybackToken({ keyId: "sk_1", privateKey: "x", asset: 1, type: "poster" });
await vodbox.createAssets({});
`;
const IN_NODE = { module: "nodenext", lib: ["es2022"], types: ["node"] };
const IN_BROWSER = {
  module: "esnext",
  moduleResolution: "bundler",
  lib: ["es2022", "dom", "dom.asynciterable"],
  types: [],
};

describe("the types of the client", () => {
  test.each([
    ["Node.js", IN_NODE],
    ["a browser", IN_BROWSER],
  ])("accept a correct program for %s, and refuse each wrong line", (_, options) => {
    const [right, wrong = []] = errorsOf([PROGRAM, WRONG], options);
    expect(right).toEqual([]);
    const lines = wrong.map((error) => error.split(" ")[0]);
    expect([...new Set(lines)]).toEqual(["3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13"]);
  });

  test("have paths of files in Node.js only", () => {
    const code = 'import { Vodbox } from "@vodbox/client";\nawait new Vodbox({ baseUrl: "x" }).upload("a.mp4");\n';
    expect([errorsOf([code], IN_NODE), errorsOf([code], IN_BROWSER)]).toEqual([[[]], [["2 TS2345"]]]);
  });
});

/** `without`: properties that name nothing to play. */
type Properties = { right: string[]; without: string };
/** Tries properties of a component, as expressions that the fourth line of a program has. */
function expectProps(errorsIn: (all: string[]) => string[][], { right, without }: Properties): void {
  const wrong = [
    without,
    "{ playbackId: 1, live: 'stage' }",
    "{ playbackId: 1, startTime: '5' }",
    "{ playbackId: 1, onError: (e) => e.detail.nothing }",
  ];
  const found = errorsIn([...right, ...wrong]);
  for (const [index, props] of right.entries()) expect(found[index], props).toEqual([]);
  for (const [index, props] of wrong.entries())
    expect(
      found[right.length + index]?.map((each) => each.split(" ")[0]),
      props,
    ).toEqual(["4"]);
}

test("the types of the player accept its properties, and refuse others", () => {
  const options = { ...IN_BROWSER, paths: { react: [join(paths.modules, "@types/react")] } };
  const program = (props: string) =>
    `import { createElement, createRef } from "react";
import { type SvcPlayerElement, VodboxPlayer } from "@vodbox/react";
const ref = createRef<SvcPlayerElement>();
export const element = createElement(VodboxPlayer, ${props});
ref.current?.play().then(() => ref.current?.error?.reason.trim());
`;
  const right =
    "{ ref, playbackId: 1, muted: true, onTimeUpdate() {}, onTokenExpiring: (e) => e.detail.expiresAt.getTime() }";
  expectProps((all) => errorsOf(all.map(program), options), {
    right: [right, '{ ref, live: "stage", token: "t" }'],
    without: "{ ref }",
  });
});

test("the types of the Vue component accept its properties and events, and refuse others", () => {
  const options = { ...IN_BROWSER, paths: { vue: [join(paths.modules, "vue")] } };
  const program = (props: string) =>
    `import { h, ref } from "vue";
import { VodboxPlayer, type VodboxPlayerInstance } from "@vodbox/vue";
const player = ref<VodboxPlayerInstance | null>(null);
export const node = () => h(VodboxPlayer, ${props});
player.value?.element?.play().then(() => player.value?.element?.error?.reason.trim());
`;
  const right =
    "{ playbackId: 1, muted: true, onTimeUpdate() {}, onTokenExpiring: (e) => e.detail.expiresAt.getTime() }";
  expectProps((all) => errorsOf(all.map(program), options), {
    right: [right, '{ live: "stage", token: "t", class: "wide" }'],
    without: "{ muted: true }",
  });
});

describe("the packages", () => {
  test("have our version, licence and no dependencies", async () => {
    for (const name of ["client", "react", "vue"] as const) {
      const root = join(folder, "node_modules/@vodbox", name);
      const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
      expect(manifest).toMatchObject({ name: `@vodbox/${name}`, version: own.version, license: "MIT" });
      expect([manifest.dependencies, manifest.scripts]).toEqual([undefined, undefined]);
      expect(readdirSync(root).sort()).toEqual(["LICENSE", "README.md", "dist", "package.json"]);
      const files = execFileSync("tar", ["-tzf", await clientPackage(name)], { encoding: "utf8" });
      expect(files).not.toMatch(/\.\.\/|^package\/(src|tsconfig)/m);
    }
    expect(statSync(await clientPackage("client")).size).toBeLessThan(120_000);
  });

  test("bundle for browsers without Node.js imports, and only what is used", async () => {
    const sizeOf = async (code: string) => {
      const stdin = { contents: code, resolveDir: folder };
      const options = { bundle: true, write: false, minify: true, format: "esm", platform: "browser" } as const;
      const { outputFiles } = await build({ stdin, ...options, logLevel: "silent" });
      return outputFiles[0]?.contents.length ?? 0;
    };
    const whole = await sizeOf('import { Vodbox } from "@vodbox/client"; globalThis.vodbox = new Vodbox({});');
    // Besides the table of operations, which has a line for each.
    const table = statSync(join(paths.root, "build/client/operations.ts")).size;
    expect(whole - table).toBeLessThan(11_500);
    const one = await sizeOf('import { verifyWebhook } from "@vodbox/client"; globalThis.verify = verifyWebhook;');
    expect(one).toBeLessThan(2_500);
  });
});
