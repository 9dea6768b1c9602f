import { spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { freePort } from "#scripts/free-port.ts";
import { readyAsset } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer, watched } from "#test/support/process.ts";

const DEPLOY = join(import.meta.dirname, "../../../deploy");
const TOKEN = "metrics-token-of-the-tests-with-32-characters";

type Panel = { title: string; type: string; targets?: { expr: string }[] };
type Rules = { groups: { rules: { alert: string; expr: string; annotations: object }[] }[] };
const read = (name: string) => readFileSync(join(DEPLOY, name), "utf8");
const dashboard = JSON.parse(read("grafana.json")) as { panels: Panel[]; templating: { list: { name: string }[] } };
const rules = (parse(read("alerts.yml")) as Rules).groups.flatMap((group) => group.rules);

/** As Grafana sends them. */
const panelQueries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({
    title,
    expr: expr.replaceAll("$__rate_interval", "1m").replaceAll("$instance", ".*"),
  })),
);
/** Names of series without the suffixes of a histogram. */
const metricsIn = (text: string) =>
  [...text.matchAll(/\bvodbox_\w+/g)].map(([name]) => name.replace(/_(bucket|count|sum)$/, ""));

/** A server with an asset and a webhook that nothing receives, so that its metrics have values. */
async function server(): Promise<RunningServer> {
  const started = await startServer(emptyFolder(), {
    env: { VODBOX_METRICS_TOKEN: TOKEN, VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" },
  });
  const { as, admin } = started;
  const { body: tenant } = await as({ admin }).createTenant({ name: "A", slug: "a" });
  const scopes = ["assets:read", "assets:write"];
  const { body: key } = await as({ admin }).createApiKey({ tenant_id: tenant.id, scopes });
  const hook = { tenant_id: tenant.id, url: `http://127.0.0.1:${await freePort()}/`, event_types: [] };
  await as({ admin }).createWebhook(hook);
  await readyAsset(started, key.token);
  return started;
}

/** Once it has every metric: the first delay of the event loop is known at the second scrape. */
async function metricsOf({ base }: RunningServer): Promise<string> {
  for (;;) {
    const answer = await fetch(`${base}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(answer.status).toBe(200);
    const text = await answer.text();
    if (/^vodbox_event_loop_delay_seconds/m.test(text) && /^vodbox_webhook_attempts_total/m.test(text)) return text;
  }
}

const promtool = (...args: string[]) => spawnSync("promtool", args, { encoding: "utf8" });

describe("the alerts and the dashboard", () => {
  test("are valid rules, and fire when they should", () => {
    expect(promtool("check", "rules", "--lint-fatal", join(DEPLOY, "alerts.yml"))).toMatchObject({ status: 0 });
    const tested = promtool("test", "rules", join(import.meta.dirname, "alerts.yml"));
    expect([tested.status, tested.stderr]).toEqual([0, ""]);
    const cases = parse(readFileSync(join(import.meta.dirname, "alerts.yml"), "utf8")).tests as { name: string }[];
    expect(cases.map(({ name }) => name)).toEqual(rules.map(({ alert }) => alert));
  });

  test("name only metrics that the server has, and promtool accepts these", async () => {
    const text = await metricsOf(await server());
    const names = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
    const used = [...rules, ...panelQueries].flatMap(({ expr }) => metricsIn(expr));
    expect(used.length).toBeGreaterThan(40);
    expect(used.filter((name) => !names.has(name))).toEqual([]);
    expect(metricsIn(JSON.stringify(dashboard.templating)).filter((name) => !names.has(name))).toEqual([]);
    const checked = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
    expect([checked.status, checked.stderr]).toEqual([0, ""]);
  });
});

describe("Prometheus", () => {
  test("scrapes with the metrics token, evaluates every alert, and answers every panel", async () => {
    const { base } = await server();
    const folder = emptyFolder();
    // The configuration as it is, with this server's address and a shorter interval.
    const config = parse(read("prometheus.yml"));
    config.global = { scrape_interval: "1s", evaluation_interval: "1s" };
    config.scrape_configs[0].static_configs[0].targets = [new URL(base).host];
    writeFileSync(join(folder, "prometheus.yml"), stringify(config));
    writeFileSync(join(folder, "alerts.yml"), read("alerts.yml"));
    writeFileSync(join(folder, config.scrape_configs[0].authorization.credentials_file), `${TOKEN}\n`);
    const port = await freePort();
    const args = [
      "--config.file=prometheus.yml",
      `--web.listen-address=127.0.0.1:${port}`,
      `--storage.tsdb.path=${folder}/data`,
    ];
    const prometheus = watched(spawn("prometheus", args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] }));
    const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)).json() as Promise<any>;
    const query = async (expr: string) => (await get(`query?query=${encodeURIComponent(expr)}`)).data;
    const until = async (condition: () => Promise<boolean>) => {
      while (!(await condition().catch(() => false)))
        if (prometheus.child.exitCode !== null) throw new Error(prometheus.stderr());
    };
    await until(async () => (await query('vodbox_event_loop_delay_seconds{quantile="1"}'))?.result.length === 1);
    const [target] = (await get("targets")).data.activeTargets;
    expect(target).toMatchObject({ health: "up", lastError: "", labels: { job: "vodbox" } });

    await until(async () => {
      const groups = (await get("rules")).data.groups as { rules: { health: string }[] }[];
      return groups.length > 0 && groups.every((group) => group.rules.every(({ health }) => health !== "unknown"));
    });
    const evaluated = (await get("rules")).data.groups.flatMap((group: any) => group.rules);
    expect(evaluated.map(({ name, health }: any) => `${name} ${health}`)).toEqual(
      rules.map(({ alert }) => `${alert} ok`),
    );
    expect((await get("alerts")).data.alerts).toEqual([]);

    for (const { title, expr } of panelQueries) {
      const answer = await get(`query?query=${encodeURIComponent(expr)}`);
      expect([title, expr, answer.status]).toEqual([title, expr, "success"]);
    }
    // Panels without a rate have a value at once.
    for (const { title, expr } of panelQueries.filter(
      (each) => !each.expr.includes("rate(") && !each.expr.includes("speed"),
    ))
      expect([title, (await query(expr)).result.length > 0]).toEqual([title, true]);
  });

  test("is refused with another token", async () => {
    const { base } = await server();
    const answer = await fetch(`${base}/metrics`, { headers: { authorization: "Bearer another" } });
    expect(answer.status).toBe(401);
  });
});
