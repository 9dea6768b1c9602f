/**
 * The HDR formats of renditions, by the names of the API, with what states them: the transfer function as ffmpeg names it
 * and as a value of ISO/IEC 23091-2, 8.2, and the VIDEO-RANGE of HLS (draft-pantos-hls-rfc8216bis, 4.4.6.2).
 */
export const HDR_FORMATS = ["hlg", "hdr10"] as const;
export type HdrFormat = (typeof HDR_FORMATS)[number];

export const HDR_SIGNALS = {
  hlg: { transfer: "arib-std-b67", cicp: 18, videoRange: "HLG" },
  hdr10: { transfer: "smpte2084", cicp: 16, videoRange: "PQ" },
} as const satisfies Record<HdrFormat, { transfer: string; cicp: number; videoRange: string }>;

const formatWith = (isOf: (signal: (typeof HDR_SIGNALS)[HdrFormat]) => boolean): HdrFormat | null =>
  HDR_FORMATS.find((format) => isOf(HDR_SIGNALS[format])) ?? null;

/** Null for SDR, and for an unknown value. */
export const hdrOfTransfer = (name: string): HdrFormat | null => formatWith(({ transfer }) => transfer === name);
export const hdrOfCicp = (value: number): HdrFormat | null => formatWith(({ cicp }) => cicp === value);
export const hdrOfVideoRange = (value: string | undefined): HdrFormat | null =>
  formatWith(({ videoRange }) => videoRange === value);

/** What a file states of its colors, as values of ISO/IEC 23091-2. */
export type CicpColors = { primaries: number; transfer: number; matrix: number; isFullRange: boolean };

export type Chromaticity = readonly [x: number, y: number];

/**
 * The display on which HDR was mastered (SMPTE ST 2086), in the units of the bitstream (ISO/IEC 23008-2, D.3.28):
 * chromaticities in 0.00002, luminance in 0.0001 cd/m².
 */
export type MasteringDisplay = {
  red: Chromaticity;
  green: Chromaticity;
  blue: Chromaticity;
  white: Chromaticity;
  maxLuminance: number;
  minLuminance: number;
};
/** The brightest pixel, and the brightest average of a frame (CTA-861.3), in cd/m². */
export type ContentLight = { maxContent: number; maxAverage: number };
/** Null what the source does not state, or states beyond the limits of the bitstream. */
export type HdrMetadata = { mastering: MasteringDisplay | null; light: ContentLight | null };
export const NO_HDR_METADATA: HdrMetadata = { mastering: null, light: null };

/** Units per 1 of chromaticities, and per cd/m². */
export const CHROMATICITY_UNITS = 50_000;
export const LUMINANCE_UNITS = 10_000;
