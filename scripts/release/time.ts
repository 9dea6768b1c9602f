import { execFileSync } from "node:child_process";
import { paths } from "../build/paths.ts";

/**
 * The time of everything in a release, so that two builds of one commit differ as little as possible: SOURCE_DATE_EPOCH
 * (seconds), else the time of the commit; the Unix epoch outside of a checkout.
 */
export function releaseTime(): Date {
  const { SOURCE_DATE_EPOCH } = process.env;
  if (SOURCE_DATE_EPOCH) return new Date(Number(SOURCE_DATE_EPOCH) * 1000);
  try {
    const shown = execFileSync("git", ["log", "-1", "--format=%ct"], {
      cwd: paths.root,
      stdio: ["ignore", "pipe", "ignore"],
    });
    return new Date(Number(shown.toString()) * 1000);
  } catch {
    return new Date(0);
  }
}
