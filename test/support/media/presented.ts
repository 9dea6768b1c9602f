import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "mpd-parser";
import { readSegmentTimes } from "#lib/isobmff";
import { emptyFolder } from "../folder.ts";

/** A track of a DASH manifest as a file, and when its first segment is presented, in seconds. */
export type Presented = { file: string; start: number };

type Read = (url: string) => Promise<Buffer>;

/** The largest rendition of video of a DASH manifest, or the audio with a label. Its times are those of the segments themselves. */
export async function presented(mpdUrl: string, read: Read, label?: string): Promise<Presented> {
  const mpd = (await read(mpdUrl)).toString("utf8");
  const manifest = parse(mpd, { manifestUri: mpdUrl });
  const groups = Object.values(manifest.mediaGroups.AUDIO.audio ?? {});
  const playlists = label === undefined ? manifest.playlists : groups.flatMap((one) => one.playlists);
  const set = mpd
    .split("<AdaptationSet")
    .find((one) =>
      label === undefined ? one.includes('contentType="video"') : one.includes(`<Label>${label}</Label>`),
    );
  const id = /<Representation id="([^"]+)"/.exec(set ?? "")?.[1];
  const playlist = playlists.find((one) => one.attributes.NAME === id);
  if (!set || !playlist) throw new Error(`No ${label ?? "video"} in ${mpd}`);
  const [timescale = 1, offset = 0] = ["timescale", "presentationTimeOffset"].map((name) =>
    Number(new RegExp(` ${name}="(\\d+)"`).exec(set)?.[1] ?? 0),
  );
  const urls = playlist.segments.map(({ resolvedUri }) => resolvedUri);
  const init = (playlist.segments[0] as unknown as { map: { resolvedUri: string } }).map.resolvedUri;
  const files = await Promise.all([init, ...urls].map(read));
  const file = join(emptyFolder(), "track.mp4");
  writeFileSync(file, Buffer.concat(files));
  return { file, start: readSegmentTimes(files[1] as Buffer).start / timescale - offset / timescale };
}
