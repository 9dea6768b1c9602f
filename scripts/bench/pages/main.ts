import { join } from "node:path";
import { axeFaults } from "#test/suites/browser/axe.ts";
import { startBrowser } from "#test/support/browser/browser.ts";
import { ADMIN, startVodbox, workFolder } from "../processes.ts";
import { compare, median, type Result } from "../result.ts";
import { fill } from "./content.ts";
import { measure, PHONE } from "./measure.ts";
import { type Load, scoreOf } from "./score.ts";

const ROUNDS = 5;
const GOAL = 95;

/** What people see of vodbox, on a slow phone with an empty cache: points as Lighthouse gives them, and faults that axe finds. */
export async function benchPages(): Promise<Result[]> {
  const work = workFolder();
  const server = await startVodbox(join(work.path, "data"), { workers: 1 });
  const browser = await startBrowser();
  try {
    const { assetId, cookie } = await fill(server.base, work.path, ADMIN);
    const pages: Record<string, { path: string; isSignedIn?: true }> = {
      "console, sign-in": { path: "/console" },
      "console, assets": { path: "/console/assets", isSignedIn: true },
      "console, one asset": { path: `/console/assets/${assetId}`, isSignedIn: true },
      "console, analytics": { path: "/console/analytics", isSignedIn: true },
      "watch page": { path: `/watch/${assetId}` },
      "embedded player": { path: `/embed/${assetId}` },
    };
    const results: Result[] = [];
    for (const [name, { path, isSignedIn }] of Object.entries(pages)) {
      const loads: Load[] = [];
      let faults: string[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const context = await browser.newContext(PHONE);
        if (isSignedIn) await context.addCookies([{ ...cookie, url: server.base }]);
        const page = await context.newPage();
        loads.push(await measure(page, server.base + path));
        if (round === 0) faults = await axeFaults(page);
        await context.close();
      }
      const of = (key: keyof Load) => median(loads.map((load) => load[key]));
      const [first, largest, blocked] = [of("firstPaint"), of("largestPaint"), of("blocked")].map(Math.round);
      results.push(
        compare(
          `${name}: performance`,
          { ours: loads.map(scoreOf), theirs: [GOAL] },
          {
            reference: "the goal",
            unit: "points",
            bar: { atLeast: 1 },
            note: `FCP ${first} ms, LCP ${largest} ms, TBT ${blocked} ms, CLS ${of("shift").toFixed(3)}`,
          },
        ),
        compare(
          `${name}: faults of accessibility, plus one`,
          { ours: [faults.length + 1], theirs: [1] },
          {
            reference: "none",
            unit: "faults",
            bar: { atMost: 1 },
            ...(faults.length > 0 && { note: faults.join("; ") }),
          },
        ),
      );
    }
    return results;
  } finally {
    await browser.close();
    await server.stop();
    work.remove();
  }
}
