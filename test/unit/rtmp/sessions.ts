import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { amfObject, encodeAmf0 } from "#src/lib/rtmp/amf0.ts";
import {
  AGGREGATE,
  AUDIO,
  chunk,
  handshakeBytes,
  media,
  message,
  publishBytes,
  setChunkSize,
  VIDEO,
} from "#test/support/live/rtmp-client.ts";
import type { TestServer } from "#test/support/live/rtmp-recorder.ts";
import { ffmpeg } from "#test/support/media/sources.ts";

/** What ffmpeg sends to publish a second of H.264 and AAC. */
export async function ffmpegSession({ port }: TestServer): Promise<Buffer> {
  const sent: Buffer[] = [];
  const relay = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    client.on("data", (data: Buffer) => sent.push(data)).on("error", () => {});
    upstream.on("error", () => {});
    client.pipe(upstream).pipe(client);
  }).listen(0, "127.0.0.1");
  await once(relay, "listening");
  const url = `rtmp://127.0.0.1:${(relay.address() as AddressInfo).port}/live/name?key=x`;
  const source = ["-f", "lavfi", "-i", "testsrc=s=96x64:r=10:d=1", "-f", "lavfi", "-i", "sine=d=1"];
  await ffmpeg(...source, "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac", "-b:a", "16k", "-f", "flv", url);
  await new Promise((resolve) => relay.close(resolve));
  return Buffer.concat(sent);
}

/** A session with everything that ffmpeg does not send. */
export function handMadeSession(): Buffer {
  const enhanced = (first: number, fourCc: string, rest: string) =>
    Buffer.concat([Buffer.from([first]), Buffer.from(fourCc), Buffer.from(rest, "hex")]);
  const aac = Buffer.from([0xaf, 0, 0x12, 0x10]);
  const packet = Buffer.concat([Buffer.from([0xaf, 1]), Buffer.alloc(300, 5)]);
  const time = 0x1fffffe;
  const tagHead = Buffer.from([AUDIO, 0, 1, 46, 0, 0, 9, 0, 0, 0, 0]);
  return Buffer.concat([
    handshakeBytes(),
    publishBytes(),
    message(
      { type: 15 },
      Buffer.concat([Buffer.from([0]), encodeAmf0("onMetaData", amfObject({ width: 1, list: [1, null, true] }))]),
    ),
    media(VIDEO, 0, enhanced(0x90, "av01", "81000c00")),
    media(VIDEO, 1, enhanced(0x91, "av01", "0a0b0c")),
    media(VIDEO, 1, Buffer.concat([Buffer.from([0x97, 2, 0, 0, 9, 1]), Buffer.from("av01abc")])),
    media(VIDEO, 2, enhanced(0xa1, "hvc1", "ffffd8000000020102")),
    media(AUDIO, 3, aac),
    setChunkSize(200),
    chunk(0, 10, { time, type: AUDIO, length: packet.length }, packet.subarray(0, 200)),
    chunk(0, 400, { time, type: AUDIO }, packet.subarray(0, 100)),
    chunk(3, 10, { time }, packet.subarray(200)),
    chunk(2, 400, { time: 40 }, packet.subarray(0, 100)),
    media(AGGREGATE, 9, Buffer.concat([tagHead, packet, Buffer.alloc(4), tagHead, packet, Buffer.alloc(4)]), 200),
    message({ type: 5, streamId: 0 }, Buffer.from([0, 0, 1, 0]), { chunkStream: 2 }),
    message({ type: 4, streamId: 0 }, Buffer.from([0, 6, 1, 2, 3, 4]), { chunkStream: 2 }),
    message({ type: 2, streamId: 0 }, Buffer.from([0, 0, 0, 10]), { chunkStream: 2 }),
  ]);
}
