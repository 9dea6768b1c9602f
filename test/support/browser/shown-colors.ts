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
  const given = JSON.stringify({ base64: bytes.toString("base64"), kind, count, region });
  return (await page.evaluate(`(${DRAW})(${given})`)) as number[][] | null;
}

/** Runs in the page. */
const DRAW = `async ({ base64, kind, count, region }) => {
  const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
  const url = URL.createObjectURL(new Blob([bytes], { type: kind === "video" ? "video/mp4" : "" }));
  const event = (target, name) =>
    new Promise((resolve) => {
      target.addEventListener(name, () => resolve(true), { once: true });
      target.addEventListener("error", () => resolve(false), { once: true });
    });
  let source, size;
  if (kind === "video") {
    source = document.createElement("video");
    source.muted = true;
    // Outside of the document it may be garbage collected before its events.
    document.body.append(source);
    const isLoaded = event(source, "loadeddata");
    source.src = url;
    let isShown = await isLoaded;
    if (isShown) {
      // Without it a canvas may stay black.
      const frame = new Promise((resolve) => source.requestVideoFrameCallback(resolve));
      const isSeeked = event(source, "seeked");
      source.currentTime = 1;
      isShown = await isSeeked;
      if (isShown) await frame;
    }
    if (!isShown) {
      source.remove();
      return null;
    }
    size = { width: source.videoWidth, height: source.videoHeight };
  } else {
    source = new Image();
    source.src = url;
    await source.decode();
    size = { width: source.naturalWidth, height: source.naturalHeight };
  }
  const canvas = Object.assign(document.createElement("canvas"), size);
  const context = canvas.getContext("2d");
  context.drawImage(source, 0, 0);
  source.remove();
  URL.revokeObjectURL(url);
  const { width, height } = region ?? size;
  const side = width / count;
  return Array.from({ length: count }, (_, patch) => {
    const corner = [Math.ceil((patch + 0.3) * side), Math.ceil(height * 0.3)];
    const { data } = context.getImageData(...corner, Math.floor(side * 0.4), Math.floor(height * 0.4));
    const sum = [0, 0, 0];
    for (let at = 0; at < data.length; at += 4)
      for (let channel = 0; channel < 3; channel++) sum[channel] += data[at + channel];
    return sum.map((value) => Math.round((value / data.length) * 40) / 10);
  });
}`;
