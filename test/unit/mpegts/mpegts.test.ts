import { describe, expect, test } from "vitest";
import type { ConvertibleAudio, LiveSample, TrackConfig } from "#src/lib/codecs/samples.ts";
import { mpegCrc32 } from "#src/lib/mpegts/crc32.ts";
import { TsDemuxer } from "#src/lib/mpegts/demuxer.ts";
import { DEFAULT_LIMITS } from "#src/lib/srt/limits.ts";
import { Random } from "#test/support/crash/random.ts";
import {
  AUDIO_PID,
  AUDIO_STREAM,
  adts,
  byteStream,
  PidWriter,
  PPS,
  pes,
  SPS,
  type StreamEntry,
  tables,
  VIDEO_PID,
  VIDEO_STREAM,
} from "#test/support/live/ts-packets.ts";

function demux(limits: Partial<typeof DEFAULT_LIMITS> = {}) {
  const configs: TrackConfig[] = [];
  const samples: LiveSample[] = [];
  const announced: (readonly string[])[] = [];
  const convertible: (ConvertibleAudio & { name: string })[] = [];
  const demuxer = new TsDemuxer({
    limits: { ...DEFAULT_LIMITS, ...limits },
    onConfig: (config) => configs.push(config),
    onSample: (sample) => samples.push(sample),
    onConvertible: (audio, name) => convertible.push({ ...audio, name }),
    onTracks: (...tracks) => announced.push(...tracks),
  });
  return { demuxer, configs, samples, announced, convertible };
}

test.each([
  [
    "one of each",
    [
      [0x1b, 0x101],
      [0x0f, 0x102],
    ],
    ["video", "audio"],
    [],
  ],
  ["video alone", [[0x1b, 0x101]], ["video"], []],
  [
    "a second audio",
    [
      [0x1b, 0x101],
      [0x0f, 0x102],
      [0x0f, 0x103],
    ],
    ["video", "audio"],
    ["audio"],
  ],
  [
    "a second audio of another codec",
    [
      [0x1b, 0x101],
      [0x81, 0x103],
      [0x0f, 0x102],
    ],
    ["video", "audio"],
    ["audio"],
  ],
  [
    "a second video",
    [
      [0x1b, 0x101],
      [0x24, 0x103],
      [0x0f, 0x102],
    ],
    ["video", "audio"],
    ["video"],
  ],
  [
    "data",
    [
      [0x1b, 0x101],
      [0x15, 0x103],
    ],
    ["video"],
    [],
  ],
] as [string, StreamEntry[], string[], string[]][])("a program map announces %s", (_, streams, kinds, ignored) => {
  const { demuxer, announced } = demux();
  demuxer.push(tables(streams));
  expect(announced).toEqual([kinds, ignored]);
});

const IDR = "65888401";
const SLICE = "419a0001";
const AUD = "0910";
const FILLER = "0cffff80";
const block = (byte: number, bytes = 50) => Buffer.alloc(bytes, byte);

/** Two frames of video and three of audio. */
function stream(): Buffer {
  const video = new PidWriter(VIDEO_PID);
  const audio = new PidWriter(AUDIO_PID);
  return Buffer.concat([
    tables(),
    video.write(pes(VIDEO_STREAM, 12_600, byteStream(AUD, SPS, PPS, FILLER, IDR), { dts: 9000, isBounded: false })),
    audio.write(pes(AUDIO_STREAM, 9000, Buffer.concat([adts(block(1)), adts(block(2))]))),
    video.write(pes(VIDEO_STREAM, 16_200, byteStream(AUD, SLICE), { dts: 12_600, isBounded: false })),
    audio.write(pes(AUDIO_STREAM, 12_840, adts(block(3)))),
  ]);
}

const expectStream = ({ configs, samples }: ReturnType<typeof demux>) => {
  expect(samples.filter(({ kind }) => kind === "video")).toEqual([
    {
      kind: "video",
      timestamp: 100,
      compositionOffset: 40,
      isKeyframe: true,
      data: Buffer.from(`00000004${IDR}`, "hex"),
    },
    {
      kind: "video",
      timestamp: 140,
      compositionOffset: 40,
      isKeyframe: false,
      data: Buffer.from(`00000004${SLICE}`, "hex"),
    },
  ]);
  const audio = samples.filter(({ kind }) => kind === "audio");
  expect(audio.map(({ timestamp, data }) => [timestamp, data[0]])).toEqual([
    [100, 1],
    [121, 2],
    [143, 3],
  ]);
  expect(configs.find(({ kind }) => kind === "video")?.configuration.toString("hex")).toBe(
    `014d400dffe1${(SPS.length / 2).toString(16).padStart(4, "0")}${SPS}010004${PPS}`,
  );
  expect(configs.find(({ kind }) => kind === "audio")?.configuration.toString("hex")).toBe("1190");
};

test("the CRC is that of the standard", () => {
  expect(mpegCrc32(Buffer.from("123456789"))).toBe(0x0376e6e7);
  // A program association section of an ffmpeg file.
  expect(mpegCrc32(Buffer.from("00b00d0001c100000001f0002ab104b2", "hex"))).toBe(0);
});

test("samples and configurations of H.264 and AAC", () => {
  const found = demux();
  found.demuxer.push(stream());
  found.demuxer.end();
  expectStream(found);
});

test("the stream may be cut anywhere, and bytes between packets are skipped", () => {
  const random = new Random(3);
  const whole = stream();
  for (let run = 0; run < 50; run++) {
    const found = demux();
    let at = 0;
    while (at < whole.length) {
      const bytes = run === 0 ? 1 : random.whole(1, 700);
      found.demuxer.push(Buffer.from(whole.subarray(at, at + bytes)));
      at += bytes;
    }
    found.demuxer.end();
    expectStream(found);
  }
  const found = demux();
  found.demuxer.push(
    Buffer.concat([Buffer.alloc(100, 1), whole.subarray(0, 376), Buffer.alloc(77), whole.subarray(376)]),
  );
  found.demuxer.end();
  expectStream(found);
});

test("a repeated packet counts once", () => {
  const found = demux();
  const whole = stream();
  const packets = Array.from({ length: whole.length / 188 }, (_, index) =>
    whole.subarray(index * 188, index * 188 + 188),
  );
  found.demuxer.push(Buffer.concat(packets.flatMap((packet) => [packet, packet])));
  found.demuxer.end();
  expectStream(found);
});

test("what a lost packet belongs to is dropped, and nothing else", () => {
  const video = new PidWriter(VIDEO_PID);
  const frames = Array.from({ length: 10 }, (_, index) => {
    const slice = Buffer.concat([Buffer.from(index === 0 ? "65" : "41", "hex"), Buffer.alloc(600, index + 1)]);
    return video.write(
      pes(VIDEO_STREAM, index * 3600, byteStream(...(index === 0 ? [SPS, PPS] : []), slice), { isBounded: false }),
    );
  });
  const count = frames.reduce((sum, frame) => sum + frame.length / 188, 0);
  const all = Buffer.concat(frames);
  for (let lost = 4; lost < count - 4; lost++) {
    const { demuxer, samples } = demux();
    demuxer.push(Buffer.concat([tables(), all.subarray(0, lost * 188), all.subarray(lost * 188 + 188)]));
    demuxer.end();
    // The start of a frame is lost with the frame before: it is not known which one has ended.
    expect([8, 9]).toContain(samples.length);
    for (const { data, timestamp } of samples) {
      const number = timestamp / 40 + 1;
      expect(data.subarray(5).every((byte) => byte === number)).toBe(true);
      expect(data).toHaveLength(4 + 1 + 600);
    }
  }
});

test("video without a timestamp continues the frame before it", () => {
  const video = new PidWriter(VIDEO_PID);
  const { demuxer, samples } = demux();
  demuxer.push(
    Buffer.concat([
      tables(),
      video.write(pes(VIDEO_STREAM, 0, byteStream(SPS, PPS, IDR))),
      video.write(pes(VIDEO_STREAM, null, byteStream(IDR))),
      video.write(pes(VIDEO_STREAM, 3600, byteStream(SLICE))),
    ]),
  );
  demuxer.end();
  expect(samples.map(({ data }) => data.toString("hex"))).toEqual([`00000004${IDR}00000004${IDR}`, `00000004${SLICE}`]);
});

test("audio frames may continue in the next packet", () => {
  const audio = new PidWriter(AUDIO_PID);
  const frames = Buffer.concat([adts(block(1)), adts(block(2)), adts(block(3)), adts(block(4))]);
  const { demuxer, samples } = demux();
  demuxer.push(
    Buffer.concat([
      tables(),
      audio.write(pes(AUDIO_STREAM, 0, frames.subarray(0, 80))),
      // The timestamp is that of the third frame, the first that begins here.
      audio.write(pes(AUDIO_STREAM, 3840, frames.subarray(80))),
    ]),
  );
  expect(samples.map(({ timestamp, data }) => [timestamp, data[0], data.length])).toEqual([
    [0, 1, 50],
    [21, 2, 50],
    [43, 3, 50],
    [64, 4, 50],
  ]);
});

test("timestamps of 33 bits wrap, and both tracks alike", () => {
  const video = new PidWriter(VIDEO_PID);
  const audio = new PidWriter(AUDIO_PID);
  const { demuxer, samples } = demux();
  const start = 2 ** 33 - 7200;
  const at = (ticks: number) => (start + ticks) % 2 ** 33;
  const frames = Array.from({ length: 5 }, (_, index) => {
    const unit = index === 0 ? byteStream(SPS, PPS, IDR) : byteStream(SLICE);
    return Buffer.concat([
      video.write(pes(VIDEO_STREAM, at(3600 * (index + 1)), unit, { dts: at(3600 * index) })),
      audio.write(pes(AUDIO_STREAM, at(3600 * index), adts(block(1)))),
    ]);
  });
  demuxer.push(Buffer.concat([tables(), ...frames]));
  demuxer.end();
  const first = start / 90;
  for (const kind of ["video", "audio"]) {
    const own = samples.filter((sample) => sample.kind === kind);
    expect(own.map(({ timestamp }) => timestamp - Math.round(first))).toEqual([0, 40, 80, 120, 160]);
    expect(own.every(({ compositionOffset }) => compositionOffset === (kind === "video" ? 40 : 0))).toBe(true);
  }
});

test("other parameter sets on a keyframe are another configuration; elsewhere they stay in the stream", () => {
  const video = new PidWriter(VIDEO_PID);
  const { demuxer, configs, samples } = demux();
  const other = "68ce0fc9";
  const frames = [
    [SPS, PPS, IDR],
    [PPS, SLICE],
    [other, SLICE],
    [SPS, PPS, IDR],
    [SPS, other, IDR],
  ];
  demuxer.push(
    Buffer.concat([
      tables(),
      ...frames.map((units, index) => video.write(pes(VIDEO_STREAM, index * 3600, byteStream(...units)))),
    ]),
  );
  demuxer.end();
  expect(configs.map(({ configuration }) => configuration.toString("hex").slice(-8))).toEqual([PPS, other]);
  expect(samples.map(({ data }) => data.toString("hex"))).toEqual([
    `00000004${IDR}`,
    `00000004${SLICE}`,
    `00000004${other}00000004${SLICE}`,
    `00000004${IDR}`,
    `00000004${IDR}`,
  ]);
});

test("a table with a wrong CRC is ignored", () => {
  const found = demux();
  const broken = Buffer.from(stream());
  broken.writeUInt8((broken[187] as number) ^ 1, 187);
  found.demuxer.push(broken);
  found.demuxer.end();
  expect(found.samples).toEqual([]);
});

const registration = (name: string) => Buffer.concat([Buffer.from([5, 4]), Buffer.from(name)]);

describe("audio to convert", () => {
  /** Frames of zeros with a header. */
  const frame = (header: string, bytes: number) => {
    const whole = Buffer.alloc(bytes);
    whole.write(header, "hex");
    return whole;
  };
  /** 24 ms, 32 ms, 32 ms; 20 ms of Opus in CELT. */
  const mp2 = frame("fffda404", 576);
  const ac3 = frame("0b77000008400000", 256);
  const eac3 = frame("0b77007f35800000", 256);
  const opus = (bytes: number) => {
    const size = [...Array<number>(Math.floor(bytes / 255)).fill(255), bytes % 255];
    return Buffer.concat([Buffer.of(0x7f, 0xe0, ...size), frame("fc", bytes)]);
  };
  const trimmed = Buffer.concat([Buffer.of(0x7f, 0xf8, 10, 0, 1, 0, 2), frame("fc", 10)]);

  test.each<[string, StreamEntry, Buffer, string, number[]]>([
    ["MP2", [3, AUDIO_PID], Buffer.concat([mp2, mp2]), "mpeg", [100, 124]],
    ["MP2 of MPEG-2", [4, AUDIO_PID], Buffer.concat([mp2, mp2]), "mpeg", [100, 124]],
    ["AC-3 of ATSC", [0x81, AUDIO_PID], Buffer.concat([ac3, ac3]), "ac3", [100, 132]],
    ["AC-3 of DVB", [6, AUDIO_PID, Buffer.from([0x6a, 1, 0])], Buffer.concat([ac3, ac3]), "ac3", [100, 132]],
    ["Enhanced AC-3", [0x87, AUDIO_PID], Buffer.concat([eac3, eac3]), "ac3", [100, 132]],
    ["Opus", [6, AUDIO_PID, registration("Opus")], Buffer.concat([opus(300), opus(20)]), "opus", [100, 120]],
    ["Opus with trims", [6, AUDIO_PID, registration("Opus")], Buffer.concat([trimmed, opus(255)]), "opus", [100, 120]],
  ])("%s is passed on frame by frame with its times, and AAC is preferred to it", (_, entry, data, codec, times) => {
    const read = (streams: StreamEntry[]) => {
      const found = demux();
      found.demuxer.push(Buffer.concat([tables(streams), new PidWriter(AUDIO_PID).write(pes(0xbd, 9000, data))]));
      found.demuxer.end();
      return found;
    };
    const { convertible, announced } = read([[0x1b, VIDEO_PID], entry]);
    expect(convertible.map((audio) => [audio.codec, audio.timestamp])).toEqual(times.map((time) => [codec, time]));
    expect(announced).toEqual([["video", "audio"], []]);
    expect(read([entry, [0x0f, 0x110]]).convertible).toEqual([]);
  });

  test("frames continue in the next packet, and what is lost ends none but its own", () => {
    const { demuxer, convertible } = demux();
    const audio = new PidWriter(AUDIO_PID);
    const all = Buffer.concat(Array.from({ length: 6 }, () => mp2));
    demuxer.push(tables([[3, AUDIO_PID]]));
    for (const [index, at] of [0, 1000, 2000].entries()) {
      const piece = all.subarray(at, index === 2 ? undefined : at + 1000);
      // The time of the first frame that begins in it.
      demuxer.push(audio.write(pes(0xc0, 9000 + 2160 * Math.ceil(at / mp2.length), piece)));
    }
    demuxer.end();
    expect(convertible.map(({ timestamp }) => timestamp)).toEqual([100, 124, 148, 172, 196, 220]);
    expect(convertible.every(({ data }) => data.equals(mp2))).toBe(true);
  });

  test.each([
    ["ends in its control header", Buffer.of(0x7f, 0xe0)],
    ["has a length without an end", Buffer.alloc(3000, 0xff).fill(Buffer.of(0x7f, 0xe0), 0, 2)],
    ["is shorter than it says", Buffer.concat([Buffer.of(0x7f, 0xe0, 200), Buffer.alloc(50, 0xfc)])],
    ["has no control header", Buffer.alloc(100, 0xfc)],
    ["has an extension beyond its end", Buffer.of(0x7f, 0xe4, 10, 200, 1, 2)],
  ])("Opus that %s is dropped", (_, data) => {
    const { demuxer, convertible } = demux();
    demuxer.push(tables([[6, AUDIO_PID, registration("Opus")]]));
    const audio = new PidWriter(AUDIO_PID);
    for (const content of [data, opus(30)]) demuxer.push(audio.write(pes(0xbd, 9000, content)));
    demuxer.end();
    expect(convertible).toHaveLength(1);
  });
});

describe("rejects", () => {
  test.each<[string, StreamEntry[], string]>([
    ["MPEG-2 video", [[2, VIDEO_PID]], "The video codec MPEG-2 is not supported over SRT. Use H.264 or HEVC."],
    ["AV1", [[6, VIDEO_PID, registration("AV01")]], "The video codec AV1"],
    [
      "DTS",
      [
        [0x1b, VIDEO_PID],
        [0x82, AUDIO_PID],
      ],
      "The audio codec DTS is not supported. Use AAC",
    ],
    [
      "Opus of six channels",
      [
        [0x1b, VIDEO_PID],
        [6, AUDIO_PID, Buffer.concat([registration("Opus"), Buffer.from([0x7f, 2, 0x80, 6])])],
      ],
      "Opus with more than two channels is not supported",
    ],
  ])("%s", (_, streams, message) => {
    expect(() => demux().demuxer.push(tables(streams))).toThrow(message);
  });

  test("what is no transport stream, after some time", () => {
    const { demuxer } = demux({ garbageBytes: 10_000 });
    const random = new Random(2);
    expect(() => {
      for (let count = 0; count < 100; count++)
        demuxer.push(random.bytes(1316).map((byte) => (byte === 0x47 ? 0 : byte)) as Buffer);
    }).toThrow("not MPEG-TS");
  });

  test("scrambled packets", () => {
    const packets = new PidWriter(VIDEO_PID).write(pes(VIDEO_STREAM, 0, byteStream(SPS, PPS, IDR)));
    packets[3] = (packets[3] as number) | 0xc0;
    const { demuxer } = demux();
    expect(() => demuxer.push(Buffer.concat([tables(), packets]))).toThrow("scrambled");
  });

  test("a frame of too many NAL units", () => {
    const units = byteStream(SPS, PPS, ...Array.from({ length: 2001 }, () => "65"));
    const { demuxer } = demux();
    expect(() => {
      demuxer.push(Buffer.concat([tables(), new PidWriter(VIDEO_PID).write(pes(VIDEO_STREAM, 0, units))]));
      demuxer.end();
    }).toThrow("more than 2000 NAL units");
  });

  test("audio frames with several blocks", () => {
    const frame = adts(block(1), { blocks: 2 });
    const { demuxer } = demux();
    expect(() =>
      demuxer.push(Buffer.concat([tables(), new PidWriter(AUDIO_PID).write(pes(AUDIO_STREAM, 0, frame))])),
    ).toThrow("several raw data blocks");
  });
});

test("streams of other types are ignored next to those that are supported", () => {
  const { demuxer, samples } = demux();
  const streams: StreamEntry[] = [
    [0x86, 0x200],
    [0x06, 0x201],
    [0x1b, VIDEO_PID],
    [0x1b, 0x202],
    [0x81, 0x203],
    [0x0f, AUDIO_PID],
  ];
  demuxer.push(
    Buffer.concat([tables(streams), new PidWriter(0x202).write(pes(VIDEO_STREAM, 0, byteStream(SPS, PPS, IDR)))]),
  );
  demuxer.push(new PidWriter(AUDIO_PID).write(pes(AUDIO_STREAM, 0, adts(block(1)))));
  demuxer.end();
  expect(samples.map(({ kind }) => kind)).toEqual(["audio"]);
});

test("a frame that exceeds its limit is dropped, whatever the packets carry", () => {
  const video = new PidWriter(VIDEO_PID);
  const { demuxer, samples } = demux({ videoBytes: 188 * 100 });
  const large = Buffer.concat([
    byteStream(SPS, PPS),
    byteStream(Buffer.concat([Buffer.from("65", "hex"), Buffer.alloc(30_000, 1)])),
  ]);
  demuxer.push(Buffer.concat([tables(), video.write(pes(VIDEO_STREAM, 0, large, { isBounded: false }))]));
  demuxer.push(video.write(pes(VIDEO_STREAM, 3600, byteStream(SPS, PPS, IDR), { isBounded: false })));
  demuxer.end();
  expect(samples.map(({ timestamp }) => timestamp)).toEqual([40]);
});
