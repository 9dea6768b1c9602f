declare module "webvtt-parser" {
  export class WebVTTParser {
    parse(
      input: string,
      mode?: string,
    ): {
      cues: { startTime: number; endTime: number; id: string; text: string }[];
      errors: { message: string; line: number }[];
    };
  }
}
