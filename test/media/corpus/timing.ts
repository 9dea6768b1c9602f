import {
  aac,
  beeping,
  both,
  from,
  opus,
  picture,
  RATE,
  remade,
  SECONDS,
  type Source,
  vp8,
  words,
  x264,
} from "./source.ts";

/** Rates, gaps, freezes, and tracks that begin and end at other times. */

const codecs = (ending: string): string[] =>
  ending === "webm" ? [...vp8, ...opus] : ending === "avi" ? [...x264, ...words("-c:a libmp3lame")] : [...x264, ...aac];

const rates = ["mp4", "mkv", "ts"].flatMap((ending) =>
  (
    [
      ["12", 12],
      ["15", 15],
      ["24000/1001", 23.976],
      ["24", 24],
      ["30000/1001", 29.97],
      ["30", 30],
      ["50", 50],
      ["60000/1001", 59.94],
      ["60", 60],
    ] as [string, number][]
  ).map(
    ([rate, expected]): Source => ({
      name: `${rate} frames per second`,
      family: "Frame rates",
      ending,
      rate: expected,
      seconds: SECONDS,
      size: "160x90",
      from: [...both({ rate }), ...codecs(ending)],
    }),
  ),
);

/** Frames that are left out, as by cameras and screen recorders; the rate is that of the motion. */
const variable = ["mp4", "mkv", "webm", "mov"].flatMap((ending) =>
  (
    [
      ["a freeze of 3 s", "lt(t,2)+gte(t,5)"],
      ["a late first frame", "gte(t,0.5)"],
      ["every eleventh frame missing", "mod(n,11)"],
      ["idle periods, as of a screen recorder", "lt(mod(t,2),0.5)+not(mod(n,8))"],
    ] as [string, string][]
  ).map(([name, select]): Source => {
    const seconds = 8;
    return {
      name,
      family: "Variable frame rate",
      ending,
      rate: 30,
      seconds,
      size: "160x90",
      flashes: [],
      within: 0.3,
      from: [
        ...both({ rate: 30, seconds }, { seconds }),
        ...["-vf", `select='${select}'`, "-vsync", "vfr", ...codecs(ending)],
      ],
    };
  }),
);

const unequal = ["mp4", "mov", "mkv", "webm", "ts", "flv", "avi"].flatMap((ending): Source[] => {
  const common = { family: "Tracks of unequal length", ending, rate: RATE, size: "160x90", within: 0.25 };
  const maps = words("-map 0 -map 1");
  return [
    {
      ...common,
      name: "audio longer",
      seconds: 6,
      flashes: from(0, 3),
      from: [...both({ seconds: 3 }, { seconds: 6 }), ...maps, ...codecs(ending)],
    },
    {
      ...common,
      name: "video longer",
      seconds: 6,
      beeps: from(0, 3),
      from: [...both({ seconds: 6 }, { seconds: 3 }), ...maps, ...codecs(ending)],
    },
    // AVI has no times: a track begins at its start.
    ...(ending === "avi"
      ? []
      : [
          {
            ...common,
            name: "audio late and longer",
            seconds: 6,
            flashes: from(0, 4),
            beeps: from(2, 6),
            from: [...picture(), ...["-itsoffset", "2"], ...beeping(), ...maps, ...codecs(ending)],
          },
          {
            ...common,
            name: "video late and longer",
            seconds: 6,
            flashes: [0, ...from(3, 6)],
            beeps: from(0, 4),
            from: [...["-itsoffset", "2"], ...picture(), ...beeping(), ...maps, ...codecs(ending)],
          },
        ]),
  ];
});

/** Parts of another pace: the fastest is that of the motion. */
const paces = ["mp4", "mkv", "webm"].flatMap((ending) =>
  (
    [
      ["active for a third of the time, then idle", 30, 30, 12, "lt(t,4)+not(mod(n,3))"],
      [
        "24 frames per second on a screen with 60, and a freeze",
        60,
        24,
        9,
        "(lt(t,3)+gte(t,6))*not(mod(mod(n,5),2)+eq(mod(n,5),4))",
      ],
      ["idle first", 30, 30, 14, "gte(t,12)+not(mod(n,6))"],
    ] as [string, number, number, number, string][]
  ).map(
    ([name, made, rate, seconds, select]): Source => ({
      name,
      family: "Variable frame rate",
      ending,
      rate,
      seconds,
      size: "160x90",
      flashes: [],
      within: 0.3,
      from: [
        ...both({ rate: made, seconds }, { seconds }),
        ...["-vf", `select='${select}'`, "-vsync", "vfr", ...codecs(ending)],
      ],
    }),
  ),
);

/** Tracks that differ by less than half a second, in containers that state their lengths and in those that do not. */
const nearlyEqual = ["mp4", "mkv", "webm", "ts", "flv"].flatMap((ending): Source[] => {
  const common = { family: "Tracks of nearly equal length", ending, rate: RATE, size: "160x90", within: 0.08 };
  const maps = words("-map 0 -map 1");
  const made = (video: number, audio: number) => [
    ...[...both({ seconds: video }, { seconds: audio }), ...maps, ...codecs(ending)],
  ];
  return [
    {
      ...common,
      name: "audio that is 0.4 s longer, at the end of a segment",
      seconds: 8.4,
      beeps: from(0, 9),
      from: made(8, 8.4),
    },
    {
      ...common,
      name: "audio that is 0.45 s longer",
      seconds: 6.45,
      flashes: from(0, 6),
      beeps: from(0, 7),
      from: made(6, 6.45),
    },
    {
      ...common,
      name: "audio that is 0.15 s shorter",
      seconds: 4.6,
      flashes: from(0, 5),
      beeps: from(0, 5),
      from: made(4.6, 4.45),
    },
  ];
});

const stills = ["mp4", "mkv", "mov", "webm"].map(
  (ending): Source => ({
    name: "one frame and audio",
    family: "Tracks of unequal length",
    ending,
    seconds: 8,
    size: "160x90",
    flashes: [0],
    rate: RATE,
    within: 0.3,
    from: [...both({ seconds: 0.04 }, { seconds: 8 }), ...words("-map 0 -map 1"), ...codecs(ending)],
  }),
);

/** Files without a length, or with a wrong one. */
const lengths: Source[] = [
  ...["-live 1", "-live 1 -cluster_time_limit 500"].flatMap((args) =>
    (["webm", "mkv"] as const).map(
      (ending): Source => ({
        name: `a recording without a length (${args})`,
        family: "Lengths left out",
        ending,
        seconds: SECONDS,
        rate: RATE,
        size: "160x90",
        from: [...both(), ...codecs(ending), ...words(args)],
      }),
    ),
  ),
  ...["frag_keyframe+empty_moov", "frag_every_frame+empty_moov+default_base_moof", "frag_keyframe", "dash"].map(
    (flags): Source => ({
      name: `fragments (${flags})`,
      family: "Lengths left out",
      ending: "mp4",
      seconds: SECONDS,
      rate: RATE,
      size: "160x90",
      from: [...both(), ...codecs("mp4"), "-movflags", flags],
    }),
  ),
  {
    name: "MP3 without a header of its length",
    family: "Lengths left out",
    ending: "mp3",
    seconds: 8,
    size: null,
    apart: 0.12,
    from: [...beeping({ seconds: 8 }), ...words("-c:a libmp3lame -q:a 9 -write_xing 0")],
  },
  {
    name: "FLV that is not completed",
    family: "Lengths left out",
    ending: "flv",
    seconds: SECONDS,
    rate: RATE,
    size: "160x90",
    from: [...both(), ...codecs("flv"), ...words("-flvflags no_duration_filesize")],
  },
  ...(["mkv", "mp4"] as const).map(
    (ending): Source => ({
      name: "a subtitle at ten hours",
      family: "Lengths left out",
      ending,
      seconds: SECONDS,
      rate: RATE,
      size: "160x90",
      from: async (path) => {
        const { ffmpeg } = await import("#test/support/media/sources.ts");
        const { writeFileSync } = await import("node:fs");
        writeFileSync(
          `${path}.srt`,
          "1\n00:00:01,000 --> 00:00:02,000\nHello\n\n2\n10:00:00,000 --> 10:00:01,000\nLate\n",
        );
        const subtitles = ending === "mp4" ? "mov_text" : "srt";
        await ffmpeg(
          ...both(),
          "-i",
          `${path}.srt`,
          ...words("-map 0 -map 1 -map 2"),
          ...codecs(ending),
          "-c:s",
          subtitles,
          path,
        );
      },
    }),
  ),
];

/** Files that begin elsewhere than at 0, or whose first part is cut off by an edit list. */
const starts: Source[] = [
  ...["mkv", "ts", "flv", "mov"].map(
    (ending): Source => ({
      name: "times that begin at an hour",
      family: "Starts and cuts",
      ending,
      seconds: SECONDS,
      rate: RATE,
      size: "160x90",
      from: [...both(), ...codecs(ending), ...words("-output_ts_offset 3600")],
    }),
  ),
  ...["mp4", "mov"].flatMap((ending): Source[] => [
    {
      name: "an edit list that cuts at a keyframe",
      family: "Starts and cuts",
      ending,
      seconds: 3,
      rate: RATE,
      size: "160x90",
      from: remade([...both(), ...codecs("mp4")], "mp4", ...words("-ss 1 -c copy")),
      within: 0.3,
      flashes: [],
      beeps: [],
    },
    {
      name: "a cut between keyframes",
      family: "Starts and cuts",
      ending,
      seconds: 2.4,
      rate: RATE,
      size: "160x90",
      from: async (path) => {
        const { ffmpeg } = await import("#test/support/media/sources.ts");
        await ffmpeg(...both(), ...codecs("mp4"), `${path}.mp4`);
        await ffmpeg("-ss", "1.6", "-i", `${path}.mp4`, "-c", "copy", path);
      },
      within: 0.3,
      flashes: [],
      beeps: [],
    },
  ]),
];

export const timing: Source[] = [
  ...rates,
  ...variable,
  ...paces,
  ...unequal,
  ...nearlyEqual,
  ...stills,
  ...lengths,
  ...starts,
];
