export { CaptionReader } from "./caption-reader.ts";
export { captionsOfSample } from "./caption-samples.ts";
export { CaptionText } from "./caption-text.ts";
export { BOTTOM_ROW, type ShownCaption, settingsOf } from "./shown-caption.ts";
export { type CaptionedCodec, captionBytes, isCaptioned, unitTypes } from "./user-data.ts";
