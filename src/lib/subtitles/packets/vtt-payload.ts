import { cueSettingsFault } from "../vtt/settings.ts";

/** WebVTT, 4.2.2: times within a cue. In Matroska they count from the cue, and no player of the product needs them. */
const TIME_TAG = /<\d[\d:.]{0,20}>/g;
const MAX_SETTINGS = 200;

/** The payload of a cue that comes without a file around it: without what would end it, or begin another one. */
export const vttPayload = (text: string): string =>
  text
    .replaceAll("-->", "--&gt;")
    .replaceAll(TIME_TAG, "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join("\n");

/** The settings of such a cue, without a region, which is defined in the header of a file; empty where they are malformed. */
export function settingsOf(text: string): string {
  const settings = text
    .slice(0, MAX_SETTINGS)
    .split(/\s+/)
    .filter((setting) => setting !== "" && !setting.startsWith("region:"))
    .join(" ");
  return cueSettingsFault(settings) === null ? settings : "";
}
