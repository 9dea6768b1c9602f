const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

/** The longer side of the frame, in pixels. */
const LONG_SIDE = 640;
const USUAL = { width: 16, height: 9 };

type Framed = { title: string; width: number | null; height: number | null };

/** HTML of a frame in the shape of the video, which becomes smaller with its page. */
export function embedCode(url: string, { title, width, height }: Framed): string {
  const shape = width && height ? { width, height } : USUAL;
  const scale = LONG_SIDE / Math.max(shape.width, shape.height);
  const size = { width: Math.round(shape.width * scale), height: Math.round(shape.height * scale) };
  const style = `border:0;max-width:100%;height:auto;aspect-ratio:${shape.width}/${shape.height}`;
  return `<iframe src="${escaped(url)}" width="${size.width}" height="${size.height}" style="${style}" allow="autoplay; fullscreen; picture-in-picture" title="${escaped(title)}"></iframe>`;
}
