import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { archiveOptions } from "#scripts/debian/packages.ts";
import { listsIn, macrosIn, writeConfigured } from "#scripts/ffmpeg/configured.ts";
import { addNumaStub, configure } from "#scripts/ffmpeg/link.ts";
import { fetchLinkable } from "#scripts/ffmpeg/linked.ts";
import { sourcesWith } from "#scripts/ffmpeg/source.ts";
import { emptyFolder } from "#test/support/folder.ts";

/** With Debian's archive, which the build of ffmpeg needs too. */
test.skipIf(process.arch !== "x64")(
  "what is kept of ffmpeg's configure is what it finds",
  { timeout: 600_000 },
  async () => {
    const work = emptyFolder();
    const options = await archiveOptions("x64", work, ["deb", "deb-src"]);
    const source = await sourcesWith(options)("ffmpeg");
    const fetched = async () => {
      const folder = mkdtempSync(join(work, "fetched-"));
      return fetchLinkable(source, "linked", { arch: "x64", work: folder, options });
    };
    const kept = await fetched();
    const ran = await fetched();
    const isKept = await writeConfigured(kept.source, kept.version, kept.configuration);
    if (!isKept) {
      // A newer version is configured, and its result is kept by the next change of the recipe.
      console.warn(`configured.txt is not of ffmpeg ${source.version}; write it with: npm run ffmpeg:configured`);
      return;
    }
    await addNumaStub(ran.sysroot);
    await configure(ran);
    expect(listsIn(kept.source)).toEqual(listsIn(ran.source));
    const ours = macrosIn(kept.source);
    const theirs = macrosIn(ran.source);
    // It defines also what no file uses; the other way round there may be more, as absent.
    const other = [...theirs].filter(([name, value]) => (ours.get(name) ?? "0") !== value);
    expect(Object.fromEntries(other)).toEqual({});
    const more = [...ours].filter(([name, value]) => !theirs.has(name) && value !== "0");
    expect(more).toEqual([]);
  },
);
