import { ignoredTrack, PublishStream, type StreamMetadata } from "#lib/publishing";
import type { AmfValue } from "./amf0.ts";
import { readAudioTag } from "./audio-tag.ts";
import { MESSAGE, type RtmpMessage } from "./messages.ts";
import { TrackChoice } from "./multitrack.ts";
import { readVideoTag } from "./video-tag.ts";

/** A stream as the messages of RTMP. */
export class IngestStream extends PublishStream {
  readonly #video = new TrackChoice(() => this.warn(ignoredTrack("video")));
  readonly #audio = new TrackChoice(() => this.warn(ignoredTrack("audio")));

  /** An audio or video message. Throws as `readVideoTag` does, and what the sink throws. */
  media({ type, payload, timestamp }: RtmpMessage): void {
    const tag =
      type === MESSAGE.video
        ? readVideoTag(payload, timestamp, this.#video)
        : readAudioTag(payload, timestamp, this.#audio);
    if (tag === null) return;
    if ("sample" in tag) this.sample(tag.sample);
    else if ("config" in tag) this.config(tag.config);
    else this.convertible(tag.convertible, tag.name);
  }

  /** The values of a data message: `@setDataFrame`, `onMetaData` and an object, or the last two. Others are ignored. */
  data(values: AmfValue[]): void {
    const [name, object] = values[0] === "@setDataFrame" ? values.slice(1) : values;
    if (name !== "onMetaData" || !(object instanceof Map)) return;
    const scalars = [...object].filter(([, value]) => ["number", "string", "boolean"].includes(typeof value));
    this.metadata(Object.fromEntries(scalars) as StreamMetadata);
  }
}
