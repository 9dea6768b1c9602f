/**
 * Packages an FLV file: `cmaf-process.ts FILE FOLDER SPEED`, at a speed of 1 as fast as a publisher sends it, at 0 at
 * once. Writes a line of JSON for each part, each health report, and the recording.
 */
import { readFileSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createPackager } from "#live/cmaf/packager.ts";
import { readFlv } from "#test/support/live/flv-reader.ts";

const [file = "", folder = "", speed = "0"] = process.argv.slice(2);
// Its default action ends the process instead of the write.
process.on("SIGXFSZ", () => {});
const report = (line: object) => writeSync(1, `${JSON.stringify(line)}\n`);

const packager = createPackager({
  folder,
  onPart: ({ data, ...part }) => report({ part: { ...part, kept: data.length > 0 } }),
  onSegment: (segment) => report({ segment }),
  onHealth: (health) => report({ health }),
});
const start = performance.now();
for (const { config, sample } of readFlv(readFileSync(file))) {
  if (config) packager.config(config);
  else {
    const wait = Number(speed) > 0 ? sample.timestamp / Number(speed) - (performance.now() - start) : 0;
    // Real time: so that a kill meets it while it packages.
    if (wait > 0) await sleep(wait);
    packager.sample(sample);
  }
}
report({ recording: await packager.end() });
