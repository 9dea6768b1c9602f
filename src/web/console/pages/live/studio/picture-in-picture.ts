const FRAMES_PER_SECOND = 30;
/** The camera's share of the picture's width. */
const CAMERA_WIDTH = 0.22;
const MARGIN = 0.02;

type Combined = { track: MediaStreamTrack; stop(): void };
/** Chromium has it. It continues while the page is hidden; timers nearly stop then. */
type Processor = { readable: ReadableStream<{ close(): void }> };
type Processors = { MediaStreamTrackProcessor?: new (options: { track: MediaStreamTrack }) => Processor };

/** The screen with the camera in its lower right corner, as one track. */
export async function pictureInPicture(screen: MediaStreamTrack, camera: MediaStreamTrack): Promise<Combined> {
  const [below, above] = await Promise.all([playing(screen), playing(camera)]);
  const canvas = document.createElement("canvas");
  const context = canvas.getContext("2d") as CanvasRenderingContext2D;
  const draw = () => {
    const { videoWidth: width, videoHeight: height } = below;
    if (width === 0 || height === 0) return;
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    context.drawImage(below, 0, 0, width, height);
    if (above.videoWidth === 0) return;
    const size = { width: width * CAMERA_WIDTH, height: (width * CAMERA_WIDTH * above.videoHeight) / above.videoWidth };
    const margin = width * MARGIN;
    context.drawImage(above, width - size.width - margin, height - size.height - margin, size.width, size.height);
  };
  draw();
  const [track] = canvas.captureStream(FRAMES_PER_SECOND).getVideoTracks() as [MediaStreamTrack];
  const stopDrawing = onEachFrame(camera, draw);
  return {
    track,
    stop() {
      stopDrawing();
      track.stop();
      for (const video of [below, above]) video.srcObject = null;
    },
  };
}

async function playing(track: MediaStreamTrack): Promise<HTMLVideoElement> {
  const video = document.createElement("video");
  Object.assign(video, { srcObject: new MediaStream([track]), muted: true, playsInline: true });
  await video.play();
  return video;
}

/** Calls `draw` for each frame of the camera, where the browser reports them, else by time. Returns what ends that. */
function onEachFrame(camera: MediaStreamTrack, draw: () => void): () => void {
  const { MediaStreamTrackProcessor } = window as Processors;
  if (!MediaStreamTrackProcessor) {
    const timer = setInterval(draw, 1000 / FRAMES_PER_SECOND);
    return () => clearInterval(timer);
  }
  const copy = camera.clone();
  const reader = new MediaStreamTrackProcessor({ track: copy }).readable.getReader();
  const read = async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      next.value.close();
      draw();
    }
  };
  void read().catch(() => {});
  return () => {
    copy.stop();
    void reader.cancel().catch(() => {});
  };
}
