import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

/**
 * The mean red, green and blue of the middle of each of `count` patches from left to right, as the browser of `page` draws a
 * video at 1 s, or an image; null where it cannot decode it. `region`: the part of the image that contains the patches.
 */
export async function shownColors(
  page: Page,
  file: string | Buffer,
  { kind, count, region }: { kind: "video" | "image"; count: number; region?: { width: number; height: number } },
): Promise<number[][] | null> {
  const bytes = typeof file === "string" ? readFileSync(file) : file;
  return page.evaluate(draw, { base64: bytes.toString("base64"), kind, count, region });
}

/** Runs in the page. */
async function draw(given: {
  base64: string;
  kind: "video" | "image";
  count: number;
  region: { width: number; height: number } | undefined;
}): Promise<number[][] | null> {
  const { base64, kind, count, region } = given;
  const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], { type: kind === "video" ? "video/mp4" : "" }));
  const event = (target: EventTarget, name: string) =>
    new Promise<boolean>((resolve) => {
      target.addEventListener(name, () => resolve(true), { once: true });
      target.addEventListener("error", () => resolve(false), { once: true });
    });
  let source: HTMLVideoElement | HTMLImageElement;
  let size: { width: number; height: number };
  if (kind === "video") {
    const video = document.createElement("video");
    video.muted = true;
    // Outside of the document it may be garbage collected before its events.
    document.body.append(video);
    const isLoaded = event(video, "loadeddata");
    video.src = url;
    if (!(await isLoaded)) return null;
    // Without it a canvas may stay black.
    const frame = new Promise((resolve) => video.requestVideoFrameCallback(resolve));
    const isShown = event(video, "seeked");
    video.currentTime = 1;
    if (!(await isShown)) return null;
    await frame;
    source = video;
    size = { width: video.videoWidth, height: video.videoHeight };
  } else {
    const image = new Image();
    image.src = url;
    await image.decode();
    source = image;
    size = { width: image.naturalWidth, height: image.naturalHeight };
  }
  const canvas = document.createElement("canvas");
  Object.assign(canvas, size);
  const context = canvas.getContext("2d");
  if (!context) throw new Error("no context");
  context.drawImage(source, 0, 0);
  source.remove();
  URL.revokeObjectURL(url);
  const { width, height } = region ?? size;
  const side = width / count;
  return Array.from({ length: count }, (_, patch) => {
    const box = [
      Math.ceil((patch + 0.3) * side),
      Math.ceil(height * 0.3),
      Math.floor(side * 0.4),
      Math.floor(height * 0.4),
    ];
    const { data } = context.getImageData(...(box as [number, number, number, number]));
    const sum = [0, 0, 0];
    for (let at = 0; at < data.length; at += 4)
      for (let channel = 0; channel < 3; channel++) sum[channel] = (sum[channel] ?? 0) + (data[at + channel] ?? 0);
    return sum.map((value) => Math.round((value / data.length) * 40) / 10);
  });
}
