import { sql } from "drizzle-orm";
import parse from "parse-prometheus-text-format";
import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";

type Family = {
  name: string;
  type: string;
  help: string;
  metrics: { labels?: Record<string, string>; value?: string; buckets?: Record<string, string>; count?: string }[];
};

/** Every line is valid (exposition format 0.0.4), and every sample belongs to its family. */
function strictly(text: string): Family[] {
  expect(text.endsWith("\n")).toBe(true);
  const label = String.raw`[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"`;
  const sample = new RegExp(
    String.raw`^([a-zA-Z_:][\w:]*)(?:\{${label}(?:,${label})*\})? [-+]?(?:[\d.]+(?:e[-+]?\d+)?|Inf|NaN)$`,
  );
  let family = "";
  const seen = new Set<string>();
  for (const line of text.trimEnd().split("\n")) {
    const head = /^# (HELP|TYPE) (\S+) .+$/.exec(line);
    if (head) {
      if (head[1] === "HELP") {
        expect(seen.has(head[2] as string), line).toBe(false);
        seen.add(head[2] as string);
        family = head[2] as string;
      }
      continue;
    }
    const found = sample.exec(line);
    expect(found, line).not.toBeNull();
    expect(String(found?.[1]).replace(/_(bucket|sum|count)$/, ""), line).toBe(family.replace(/_count$/, ""));
  }
  return parse(text) as Family[];
}

test("the operator's metrics are valid, correct, few, and fast with 100,000 jobs", async () => {
  const app = await testApp();
  const { admin } = app;
  expectError(await app.call("GET", "/metrics"), 401, "unauthorized");
  const key = await app.key((await app.tenant()).id);
  expectError(await app.call("GET", "/metrics", { key }), 401, "unauthorized");
  expectError(await app.call("GET", "/metrics", { bearer: key }), 401, "unauthorized");
  await readyAsset(app, key);
  await uploaded(app, key);
  await app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 3 });
  for (const id of [1, 2, 998, 999]) await app.as(key).getAsset(id);
  await app.call("GET", `/nowhere/${"x".repeat(100)}"\n`);
  app.advance(60_000);
  for (const credential of [{ admin }, { bearer: admin }])
    expect((await app.call("GET", "/metrics", credential)).status).toBe(200);
  const scraped = await app.call("GET", "/metrics", { bearer: app.opened.app.secrets.metrics_token });
  expect([scraped.status, scraped.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  const families = new Map(strictly(scraped.text).map((family) => [family.name, family]));
  const value = (name: string, labels: Record<string, string> = {}) => {
    const metric = families
      .get(`vodbox_${name}`)
      ?.metrics.find((each) => Object.entries(labels).every(([label, text]) => each.labels?.[label] === text));
    return metric === undefined ? undefined : Number(metric.value ?? metric.count);
  };
  expect(value("jobs", { state: "queued" })).toBe(1);
  expect(value("jobs", { state: "completed" })).toBe(1);
  expect(value("jobs_oldest_age_seconds", { state: "queued" })).toBeGreaterThanOrEqual(60);
  expect(value("jobs_oldest_age_seconds", { state: "running" })).toBe(0);
  expect(value("uploads_open")).toBe(1);
  expect(value("transcoded_seconds_total")).toBe(4);
  expect(value("write_queue_depth")).toBe(0);
  expect(value("db_commits_total")).toBeGreaterThan(5);
  expect(value("db_commit_seconds_total")).toBeGreaterThan(0);
  expect(value("build_info")).toBe(1);
  for (const name of ["disk_free_bytes", "memory_bytes", "cpu_seconds_total", "transcode_speed_ratio"])
    expect(value(name), name).toBeGreaterThan(0);
  // The parser does not support histograms with additional labels.
  const answers = (route: string, method: string, status: string) =>
    new RegExp(
      `_count\\{route="${route.replaceAll(/[()]/g, "\\$&")}",method="${method}",status="${status}"\\} (\\d+)$`,
      "m",
    ).exec(scraped.text)?.[1];
  expect(answers("/api/v1/assets/:id", "GET", "2xx")).toBe("2");
  expect(answers("/api/v1/assets/:id", "GET", "4xx")).toBe("2");
  expect(answers("(none)", "ANY", "4xx")).toBe("1");
  // No ids, keys or addresses.
  for (const secret of [admin, key, "/998", "xxxx"]) expect(scraped.text).not.toContain(secret);

  /** The best of several: other programs only add to it. */
  const scrapeMs = async () => {
    const times: number[] = [];
    for (let i = 0; i < 10; i++) {
      const from = performance.now();
      expect((await app.call("GET", "/metrics", { admin })).status).toBe(200);
      times.push(performance.now() - from);
    }
    return Math.min(...times);
  };
  const before = await scrapeMs();
  const { app: program } = app.opened;
  await program.write(async (tx) => {
    await tx.run(sql`
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
      insert into transcoding_jobs (tenant_id, asset_id, status, max_attempts, created_at, updated_at)
      select 1, 1, iif(i % 2, 'queued', 'completed'), 5, 0, 0 from n`);
  });
  const [counted] = await program.db.all<{ wrong: number }>(
    sql`select count(*) as wrong from job_counts where jobs <> (select count(*) from transcoding_jobs where status = job_counts.status)`,
  );
  expect(counted).toEqual({ wrong: 0 });
  const after = await scrapeMs();
  console.log(`a scrape: ${before.toFixed(1)} ms, among 100,000 jobs ${after.toFixed(1)} ms`);
  // Counting them takes longer than all else.
  expect(after).toBeLessThan(2 * before + 5);
  expect(strictly((await app.call("GET", "/metrics", { admin })).text).length).toBeGreaterThan(15);
});
