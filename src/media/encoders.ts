/** Where video is encoded. The specification was measured with software encoding; hardware encoders are opt-in. */
export type Encoder = "software" | "nvenc" | "qsv" | "vaapi";

/** Additional codecs are encoded by software only. */
export const encoderFor = (encoder: Encoder | undefined, additional: object | undefined): Encoder | undefined =>
  additional ? "software" : encoder;
export const usesDevices = (encoder: Encoder | undefined): boolean => encoder !== undefined && encoder !== "software";

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
