import { pictureInPicture } from "./picture-in-picture.ts";

export const SOURCES = ["camera", "screen", "both"] as const;
export type Source = (typeof SOURCES)[number];
/** Device ids; empty: the browser's default. `microphone` null: none. */
export type Choice = { source: Source; camera: string; microphone: string | null };
/** What is recorded. `onEnded` is called when the browser ends it, such as by "Stop sharing". */
export type Recording = { stream: MediaStream; stop(): void };

const FULL_HD = { width: { ideal: 1920 }, height: { ideal: 1080 }, frameRate: { ideal: 30, max: 60 } };
const device = (id: string) => (id === "" ? {} : { deviceId: { exact: id } });

/** Whether this page may record: a browser allows it with HTTPS, and on localhost. */
export const mayRecord = () => navigator.mediaDevices !== undefined && typeof RTCPeerConnection !== "undefined";
export const mayShareScreen = () => mayRecord() && "getDisplayMedia" in navigator.mediaDevices;

/** Asks for the camera, the screen and the microphone that were chosen. Throws the browser's error. */
export async function record({ source, camera, microphone }: Choice, onEnded: () => void): Promise<Recording> {
  const used: MediaStream[] = [];
  const using = async (asked: Promise<MediaStream>) => {
    const stream = await asked;
    used.push(stream);
    return stream;
  };
  const end = () => {
    for (const stream of used) for (const track of stream.getTracks()) track.stop();
  };
  try {
    // First, because a browser asks only shortly after a click.
    const shared =
      source === "camera"
        ? null
        : await using(navigator.mediaDevices.getDisplayMedia({ video: { frameRate: 30 }, audio: microphone === null }));
    const audio = microphone === null ? false : device(microphone);
    const video = source === "screen" ? false : { ...FULL_HD, ...device(camera) };
    const own = audio || video ? await using(navigator.mediaDevices.getUserMedia({ audio, video })) : null;
    const [screen] = shared?.getVideoTracks() ?? [];
    const [face] = own?.getVideoTracks() ?? [];
    const combined = screen && face ? await pictureInPicture(screen, face) : null;
    const shown = combined?.track ?? screen ?? face;
    const [heard] = [...(own?.getAudioTracks() ?? []), ...(shared?.getAudioTracks() ?? [])];
    screen?.addEventListener("ended", onEnded);
    const tracks = [shown, heard].filter((track) => track !== undefined);
    return {
      stream: new MediaStream(tracks),
      stop() {
        combined?.stop();
        end();
      },
    };
  } catch (error) {
    end();
    throw error;
  }
}

export type Devices = { cameras: MediaDeviceInfo[]; microphones: MediaDeviceInfo[] };

/** Those of this machine; a browser returns their names once it has been allowed to record. */
export async function devices(): Promise<Devices> {
  const all = await navigator.mediaDevices.enumerateDevices();
  return {
    cameras: all.filter(({ kind, deviceId }) => kind === "videoinput" && deviceId !== ""),
    microphones: all.filter(({ kind, deviceId }) => kind === "audioinput" && deviceId !== ""),
  };
}
