import { vodbox } from "#web/console/api.ts";

/** A part of an image: a frame of the video. In pixels. */
export type StoryboardFrame = { image: string; x: number; y: number; width: number; height: number; seconds: number };

const MAX_FRAMES = 2000;
const CUE = /^(\d{2,4}):(\d{2}):(\d{2})\.(\d{3}) -->/;
const REGION = /^(\S{1,2000})#xywh=(\d{1,6}),(\d{1,6}),(\d{1,6}),(\d{1,6})$/;

/** The frames of a storyboard's WebVTT, whose image paths are relative to `address`. */
function framesIn(vtt: string, address: string): StoryboardFrame[] {
  const frames: StoryboardFrame[] = [];
  let seconds = 0;
  for (const line of vtt.split("\n")) {
    const time = CUE.exec(line);
    if (time) seconds = Number(time[1]) * 3600 + Number(time[2]) * 60 + Number(time[3]);
    const region = REGION.exec(line.trim());
    if (!region) continue;
    const [x, y, width, height] = region.slice(2).map(Number) as [number, number, number, number];
    frames.push({ image: new URL(region[1] as string, address).href, x, y, width, height, seconds });
    if (frames.length === MAX_FRAMES) break;
  }
  return frames;
}

/** The frames of an asset's storyboard; none for an asset without one. */
export async function loadStoryboard(assetId: number): Promise<StoryboardFrame[]> {
  const [images] = await vodbox.listAssetImages({ ids: String(assetId) });
  if (!images?.storyboard_url) return [];
  const address = new URL(images.storyboard_url, location.href).href;
  const response = await fetch(address);
  return response.ok ? framesIn(await response.text(), address) : [];
}

/** `count` frames at even distances over `seconds`. */
export function framesAcross(frames: readonly StoryboardFrame[], seconds: number, count: number): StoryboardFrame[] {
  if (frames.length === 0) return [];
  return Array.from({ length: count }, (_, index) => {
    const at = (seconds * (index + 0.5)) / count;
    return (frames.findLast((frame) => frame.seconds <= at) ?? frames[0]) as StoryboardFrame;
  });
}
