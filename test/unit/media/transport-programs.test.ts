import { describe, expect, test } from "vitest";
import { ProgramTracks } from "#media/transport/program-tracks.ts";
import { PACKET_BYTES, TransportPrograms } from "#media/transport/transport-programs.ts";
import { mapSection, programSection, readPrograms, readStreams } from "#src/lib/mpegts/tables.ts";

/** A program map, as types of streams and their PIDs. */
type Map = readonly (readonly [type: number, pid: number])[];
const H264 = 27;
const MPEG2 = 2;
const AAC = 15;
const MP2 = 3;

const streamsOf = (map: Map) => map.map(([type, pid]) => ({ type, pid, descriptors: Buffer.alloc(0) }));

const ROWS: { name: string; maps: Map[]; tracks: Map; isChanged: boolean }[] = [
  {
    name: "the same map again",
    maps: [
      [
        [H264, 256],
        [AAC, 257],
      ],
      [
        [H264, 256],
        [AAC, 257],
      ],
    ],
    tracks: [
      [H264, 256],
      [AAC, 257],
    ],
    isChanged: false,
  },
  {
    name: "a track that ends",
    maps: [
      [
        [H264, 256],
        [AAC, 257],
      ],
      [[H264, 256]],
    ],
    tracks: [
      [H264, 256],
      [AAC, 257],
    ],
    isChanged: false,
  },
  {
    name: "other PIDs",
    maps: [
      [
        [H264, 256],
        [AAC, 257],
      ],
      [
        [H264, 512],
        [AAC, 513],
      ],
    ],
    tracks: [
      [H264, 256],
      [AAC, 257],
    ],
    isChanged: true,
  },
  {
    name: "PIDs that change places",
    maps: [
      [
        [H264, 256],
        [AAC, 257],
      ],
      [
        [AAC, 256],
        [H264, 257],
      ],
    ],
    tracks: [
      [H264, 256],
      [AAC, 257],
    ],
    isChanged: true,
  },
  {
    name: "another codec on the same PID",
    maps: [
      [
        [MPEG2, 256],
        [MP2, 257],
      ],
      [
        [H264, 256],
        [MP2, 257],
      ],
    ],
    tracks: [
      [MPEG2, 256],
      [MP2, 257],
      [H264, 32],
    ],
    isChanged: true,
  },
  {
    name: "a track that is added",
    maps: [
      [[H264, 256]],
      [
        [H264, 256],
        [AAC, 257],
      ],
    ],
    tracks: [
      [H264, 256],
      [AAC, 257],
    ],
    isChanged: true,
  },
];

describe("the tracks of a program map that changes", () => {
  test.each(ROWS.map((row) => [row.name, row] as const))("%s", (_, { maps, tracks, isChanged }) => {
    const followed = new ProgramTracks(new Set());
    for (const map of maps) followed.read(streamsOf(map));
    expect(followed.tracks.map(({ type, pid }) => [type, pid])).toEqual(tracks);
    expect(followed.isChanged).toBe(isChanged);
  });

  test("thousands of versions end", () => {
    const followed = new ProgramTracks(new Set());
    for (let at = 0; at < 5000; at++) followed.read(streamsOf([[H264, 256 + (at % 4000)]]));
    for (let at = 0; at < 5000; at++) followed.read(streamsOf([[at % 2 ? MP2 : AAC, 300 + (at % 4000)]]));
    expect(followed.tracks.length).toBeLessThanOrEqual(64);
  });
});

test("tables are read as they were written", () => {
  const programs = [
    { number: 1, mapPid: 4096 },
    { number: 7, mapPid: 4100 },
  ];
  expect(readPrograms(programSection(programs))).toEqual(programs);
  const streams = [
    { type: H264, pid: 256, descriptors: Buffer.alloc(0) },
    { type: AAC, pid: 257, descriptors: Buffer.from([10, 4, 101, 110, 103, 0]) },
  ];
  expect(readStreams(mapSection(7, 256, streams), 7)).toEqual(streams);
  const many = Array.from({ length: 300 }, () => streams[0] as (typeof streams)[number]);
  expect(() => mapSection(1, 256, many)).toThrow(RangeError);
});

test("tables are whole packets that a reader follows", () => {
  const packets = (map: Map, number = 1) => {
    const written = new TransportPrograms();
    const sections: [number, Buffer][] = [
      [0, programSection([{ number, mapPid: 4096 }])],
      [4096, mapSection(number, 256, streamsOf(map))],
    ];
    for (const [pid, section] of sections) {
      const packet = Buffer.alloc(PACKET_BYTES, 0xff);
      packet.set([0x47, 0x40 | (pid >> 8), pid & 0xff, 0x10, 0]);
      section.copy(packet, 5);
      expect(written.packet(packet, 0)).toBe(false);
    }
    return written;
  };
  const tables = packets([
    [H264, 256],
    [AAC, 257],
  ]).tables();
  expect(tables.length % PACKET_BYTES).toBe(0);
  const read = new TransportPrograms();
  for (let at = 0; at < tables.length; at += PACKET_BYTES) read.packet(tables, at);
  expect(read.programs.map(({ tracks }) => tracks.tracks.map(({ pid }) => pid))).toEqual([[256, 257]]);
  expect(read.isChanged).toBe(false);
});
