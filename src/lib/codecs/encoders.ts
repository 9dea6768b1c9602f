/** Where video is encoded. The specification was measured with software encoding; hardware encoders are opt-in. */
export type Encoder = "software" | "nvenc" | "qsv" | "vaapi";

/** What encodes each codec on this machine; those that are absent are encoded in software. */
export type Encoders = Readonly<Partial<Record<string, Encoder>>>;

/** HDR is kept in software only: ffmpeg passes its metadata to few of the hardware encoders. */
export const encoderFor = (encoders: Encoders | undefined, codec: string, hdr?: unknown): Encoder =>
  (hdr ? undefined : encoders?.[codec]) ?? "software";
export const usesDevices = (encoder: Encoder): boolean => encoder !== "software";

type DeviceArguments = {
  /** Arguments before the inputs. */
  global: readonly string[];
  /** Appended to each rendition's filters. */
  filters: readonly string[];
};

const devices: Record<Encoder, DeviceArguments> = {
  software: { global: [], filters: [] },
  nvenc: { global: [], filters: [] },
  qsv: { global: [], filters: ["format=nv12"] },
  vaapi: { global: ["-vaapi_device", "/dev/dri/renderD128"], filters: ["format=nv12", "hwupload"] },
};

/** What ffmpeg needs to use the hardware, whatever the codec. */
export const deviceArguments = (encoder: Encoder): DeviceArguments => devices[encoder];
