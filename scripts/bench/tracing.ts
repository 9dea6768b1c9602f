import { join } from "node:path";
import { call, startReference, startVodbox, tenantWithKey, workFolder, wrk } from "./processes.ts";
import { alternately, compare, type Result } from "./result.ts";

const ROUNDS = 5;
const LOAD = { connections: 64, seconds: 4 };

/** The same requests with traces, of all requests and of one in a hundred, compared with those without. */
export async function benchTracing(): Promise<Result[]> {
  const work = workFolder();
  const collector = await startReference("collector");
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.base };
  const scene = async (name: string, env: Record<string, string>) => {
    const server = await startVodbox(join(work.path, name), { env });
    const { key } = await tenantWithKey(server.base);
    const headers = { "x-api-key": key };
    const body = { filename: "clip.mp4", bytes_expected: 1 };
    const made = await call<{ asset_id: number }>(server.base, "POST", "/api/v1/uploads/initiate", body, headers);
    const url = `${server.base}/api/v1/assets/${made.asset_id}`;
    return { stop: server.stop, measure: async () => (await wrk(url, { ...LOAD, headers })).requests };
  };
  const off = await scene("off", {});
  const every = await scene("every", on);
  const sampled = { OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.01" };
  const some = await scene("some", { ...on, ...sampled });
  try {
    const { theirs, all, few } = await alternately(ROUNDS, {
      theirs: off.measure,
      all: every.measure,
      few: some.measure,
    });
    const about = { reference: "the same without traces", unit: "requests/s" };
    return [
      compare("GET of one asset, all requests traced", { ours: all, theirs }, { ...about, bar: { atLeast: 0.4 } }),
      compare("GET of one asset, 1 % traced", { ours: few, theirs }, { ...about, bar: { atLeast: 0.5 } }),
    ];
  } finally {
    for (const { stop } of [off, every, some, collector]) await stop();
    work.remove();
  }
}
