/** Sums of some views, as the analytics of ours have them; what a sum does not have is absent. */
export type Values = {
  play_count: number;
  watch_time_seconds: number;
  unique_viewers?: number;
  error_count?: number;
  startup?: { p50_ms: number | null; p95_ms: number | null };
  startup_p50_ms?: number | null;
  rebuffering?: { count: number; seconds: number; ratio: number };
  rebuffer_ratio?: number;
};
export type Summary = Values & {
  devices: (Values & { device: string })[];
  timeseries?: (Values & { start: string })[];
};

/** `measurement`: Mux's default. Times are milliseconds, percentages are from 0 to 1. */
export type Metric = {
  measurement: string;
  values: Record<string, (values: Values) => number | null | undefined>;
};

const milliseconds = (seconds: number | undefined) => (seconds === undefined ? undefined : Math.round(seconds * 1000));

/** Mux's metrics that are measured here, by Mux's names. */
export const METRICS = {
  views: { measurement: "count", values: { count: ({ play_count }) => play_count } },
  unique_viewers: { measurement: "count", values: { count: ({ unique_viewers }) => unique_viewers } },
  playing_time: {
    measurement: "sum",
    values: {
      sum: ({ watch_time_seconds }) => milliseconds(watch_time_seconds),
      avg: ({ watch_time_seconds, play_count }) =>
        play_count === 0 ? 0 : Math.round((watch_time_seconds * 1000) / play_count),
    },
  },
  video_startup_time: {
    measurement: "median",
    values: {
      median: ({ startup, startup_p50_ms }) => (startup ? startup.p50_ms : startup_p50_ms),
      "95th": ({ startup }) => startup?.p95_ms,
    },
  },
  rebuffer_percentage: {
    measurement: "avg",
    values: { avg: ({ rebuffering, rebuffer_ratio }) => rebuffering?.ratio ?? rebuffer_ratio },
  },
  rebuffer_count: { measurement: "sum", values: { sum: ({ rebuffering }) => rebuffering?.count } },
  rebuffer_duration: { measurement: "sum", values: { sum: ({ rebuffering }) => milliseconds(rebuffering?.seconds) } },
  playback_failure_percentage: {
    measurement: "avg",
    values: {
      avg: ({ error_count, play_count }) =>
        error_count === undefined ? undefined : play_count === 0 ? 0 : Math.min(1, error_count / play_count),
    },
  },
} as const satisfies Record<string, Metric>;
