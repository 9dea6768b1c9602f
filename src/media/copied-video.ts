import { join } from "node:path";
import { type HdrFormat, videoCodecs } from "#lib/codecs";
import { configurationOf, readInit } from "#lib/isobmff";
import { INIT_NAME } from "./arguments.ts";
import { readDefaults, readSamples } from "./clip/fragments.ts";
import type { AdditionalVideo } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { segmentNames } from "./package.ts";
import { readResult } from "./results.ts";

/** ISO/IEC 14496-12, 8.8.3.1: sample_is_non_sync_sample. */
const NON_SYNC = 0x10000;

type Options = {
  /** The folder of the rendition, with its init segment and segments. */
  folder: string;
  codec: AdditionalVideo["codec"];
  /** What its init segment must state. */
  hdr: HdrFormat | null;
};

/**
 * Examines a copied rendition, which no decoder has read as players do: from any keyframe on, with the configuration of the init
 * segment. Resolves with whether its frames repeat that configuration where this is not allowed. Throws MediaError
 * `encode_failed` when players could not play it: the source is to be encoded.
 */
export async function inspectCopied({ folder, codec, hdr }: Options): Promise<{ isRepeating: boolean }> {
  try {
    const init = await readResult(join(folder, INIT_NAME));
    const configuration = configurationOf(init);
    if (!configuration || readInit(init).hdr !== hdr) throw new Error("its init segment is not that of the rendition");
    const inspector = videoCodecs[codec].copy.inspect(configuration);
    const defaults = readDefaults(init);
    for (const name of await segmentNames(folder)) {
      let isFirst = true;
      for (const { data, flags } of readSamples(await readResult(join(folder, name)), defaults)) {
        const fault = inspector.faultOf(data, isFirst || (flags & NON_SYNC) === 0);
        if (fault) throw new Error(`${fault} (${name})`);
        isFirst = false;
      }
    }
    return { isRepeating: inspector.isRepeating() };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code) throw error;
    throw new MediaError("encode_failed", `The video cannot be copied: ${(error as Error).message}.`, false);
  }
}
