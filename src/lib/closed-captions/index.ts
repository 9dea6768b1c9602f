export { Cea608Decoder } from "./cea608.ts";
export { Cea708Decoder } from "./cea708.ts";
export { BOTTOM_ROW, type ShownCaption } from "./shown-caption.ts";
export { type CaptionBytes, type CaptionedCodec, captionBytes, isCaptioned } from "./user-data.ts";
