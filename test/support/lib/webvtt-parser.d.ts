declare module "webvtt-parser" {
  class WebVTTParser {
    parse(
      input: string,
      mode?: string,
    ): {
      cues: { startTime: number; endTime: number; id: string; text: string }[];
      errors: { message: string; line: number }[];
    };
  }
  /** A CommonJS module, whose names Node.js does not find. */
  const library: { WebVTTParser: typeof WebVTTParser };
  export default library;
}
