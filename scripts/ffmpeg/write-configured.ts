import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { archiveOptions } from "../debian/packages.ts";
import { keepConfigured } from "./configured.ts";
import { addNumaStub, configure } from "./link.ts";
import { fetchLinkable } from "./linked.ts";
import { sourcesWith } from "./source.ts";

/** `npm run ffmpeg:configured`: writes configured.txt again, after a change of the components or of Debian's ffmpeg. */
const work = mkdtempSync(join(tmpdir(), "vodbox-configured-"));
try {
  const options = await archiveOptions("x64", work, ["deb", "deb-src"]);
  const source = await sourcesWith(options)("ffmpeg");
  const linkable = { ...(await fetchLinkable(source, "linked", { arch: "x64", work, options })), withSvtAv1: false };
  await addNumaStub(linkable.sysroot);
  await configure(linkable);
  await keepConfigured(linkable.source);
  console.log(`scripts/ffmpeg/configured.txt is that of ffmpeg ${source.version}`);
} finally {
  rmSync(work, { recursive: true, force: true });
}
