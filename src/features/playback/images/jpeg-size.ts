/** Markers of a frame header (ITU-T T.81, B.1.1.3): SOF0 to SOF15 without DHT (C4), JPG (C8) and DAC (CC). */
const isFrame = (marker: number) => marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);

/** Width and height in pixels of a JPEG image; null when it has no frame header. */
export function jpegSize(bytes: Buffer): { width: number; height: number } | null {
  for (let at = 2; at + 9 <= bytes.length && bytes[at] === 0xff; at += 2 + bytes.readUInt16BE(at + 2))
    if (isFrame(bytes[at + 1] as number))
      return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
  return null;
}
