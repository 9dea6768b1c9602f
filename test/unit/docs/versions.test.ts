import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { vodbox } from "#test/support/process.ts";

const root = join(import.meta.dirname, "../../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const { version } = JSON.parse(read("package.json")) as { version: string };

test("every program that reports the version of vodbox reports that of package.json", async () => {
  const lock = JSON.parse(read("package-lock.json"));
  expect([lock.version, lock.packages[""].version]).toEqual([version, version]);
  const { code, stdout } = await vodbox(["--version", "--json"]).ended;
  expect([code, JSON.parse(stdout).vodbox]).toEqual([0, version]);
  expect((await vodbox(["--version"]).ended).stdout).toContain(version);
  const app = await testApp();
  const metrics = await app.call("GET", "/metrics", { admin: app.admin });
  expect(/^vodbox_build_info\{.*\bversion="([^"]+)"/m.exec(metrics.text)?.[1]).toBe(version);
});

test("the changelog begins with this version, and no page or file for deployment names another one", () => {
  expect(/^## (\S+)/m.exec(read("CHANGELOG.md"))?.[1]).toBe(version);
  const files = ["README.md", ...globSync(["docs/**/*.md", "deploy/*.*", "deploy/helm/**/*.*"], { cwd: root })];
  const named = files.flatMap((path) =>
    [...read(path).matchAll(/vodbox[-_:](?:\$\{\w+:-)?(\d+\.\d+\.\d+)/g)].map(([, found]) => `${path} ${found}`),
  );
  expect(named.length).toBeGreaterThan(2);
  expect(named.filter((each) => !each.endsWith(` ${version}`))).toEqual([]);
});

test("the OpenAPI document has the version of the API, which its specification defines", async () => {
  const app = await testApp();
  expect((await app.call("GET", "/api/v1/openapi.json")).body.info.version).toBe("1.0.0");
});
