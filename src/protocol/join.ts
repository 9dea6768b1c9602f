import * as v from "valibot";
import { Run } from "./clip.ts";
import { describedAs, Text } from "./fields.ts";
import { AssetId, PrefixField } from "./record-fields.ts";

/**
 * Jobs that join the media of several assets. A worker that announces `capabilities: {joins: 1}` receives them; their
 * contract has `join`, and no source. The worker reads the segments of all parts (`artifacts.sign_url` with the method GET
 * signs their URLs), moves them onto one timeline, and writes media as for any other job. Nothing is encoded.
 */

/** The version of this protocol, as workers announce it in `capabilities.joins`. */
export const JOINS_VERSION = 1;

const Path = Text(900);
const LocalPath = v.pipe(v.nullable(v.string()), v.description("The directory of the prefix, on a shared disk"));

const Part = v.object({
  asset_id: AssetId,
  prefix: v.pipe(Path, v.description("Where its media are")),
  manifest_path: v.pipe(Path, v.description("The HLS manifest, relative to the prefix")),
  local_path: LocalPath,
  shared: v.pipe(
    v.nullable(
      v.object({
        prefix: describedAs(PrefixField, Path),
        local_path: LocalPath,
        segments: v.pipe(v.array(Run), v.description("Runs of numbered segments")),
        objects: v.pipe(v.array(v.string()), v.description("Init segments and images")),
      }),
    ),
    v.description("Of a clip: the media of another asset that it plays, whose paths are relative to their own prefix"),
  ),
});

export const Join = v.object({ parts: v.pipe(v.array(Part), v.description("In order; may be repeated")) });
export type Join = v.InferOutput<typeof Join>;
