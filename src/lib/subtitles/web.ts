export { type Cue, type Fault, parsing } from "./vtt/parse.ts";
export { retimed } from "./vtt/retime.ts";
export { formatTime, readTime } from "./vtt/time.ts";
export { asParagraphs, type SpokenCue, spokenCues } from "./vtt/transcript.ts";
