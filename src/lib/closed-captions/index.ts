export { BOTTOM_ROW, Cea608Decoder, type ShownCaption } from "./cea608.ts";
export { type CaptionBytes, type CaptionedCodec, captionBytes, isCaptioned } from "./user-data.ts";
