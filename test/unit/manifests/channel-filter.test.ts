import { expect, test } from "vitest";
import { inStereo, mpdInStereo as setsInStereo } from "#src/lib/manifests/channel-filter.ts";
import { editMaster } from "#src/lib/manifests/master-edits.ts";
import { editMpd } from "#src/lib/manifests/mpd-edits.ts";

const masterInStereo = (text: string) => editMaster(text, [inStereo]);
const mpdInStereo = (text: string) => editMpd(text, [setsInStereo]);

const media = (group: string, channels: string) =>
  `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="A",CHANNELS="${channels}",URI="${group}${channels}/list.m3u8"\n`;
const variant = (name: string, group: string) =>
  `#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.64001e,mp4a.40.2",AUDIO="${group}"\n\n${name}/list.m3u8\n`;
const compact = (text: string) => text.replaceAll("\n\n", "\n");
const HEAD = "#EXTM3U\n";
const TEXTS = '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="more",NAME="T",URI="t.m3u8"\n';

test("a master playlist loses the groups with more than two channels, and their variants", () => {
  const kept = [HEAD, media("stereo", "2"), TEXTS, variant("720p", "stereo"), variant("360p", "stereo")];
  const text = [
    ...[HEAD, media("stereo", "2"), media("more", "2"), media("more", "6/JOC"), TEXTS],
    ...[variant("720p", "more"), variant("720p", "stereo"), variant("360p", "more"), variant("360p", "stereo")],
  ].join("");
  expect(compact(masterInStereo(text))).toBe(compact(kept.join("")));
});

test.each([
  ["has no other audio", HEAD + media("more", "6") + variant("720p", "more")],
  ["has only stereo", HEAD + media("stereo", "2") + variant("720p", "stereo")],
  ["states no channels", `${HEAD}#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="A",URI="a"\n${variant("720p", "a")}`],
  ["has no groups", `${HEAD}#EXT-X-STREAM-INF:BANDWIDTH=1\n720p.m3u8\n`],
])("a master playlist that %s stays as it is", (_, text) => expect(masterInStereo(text)).toBe(text));

const set = (channels: string, attributes = 'contentType="audio"') =>
  `<AdaptationSet ${attributes}><Representation id="${channels}"><AudioChannelConfiguration schemeIdUri="urn:mpeg:dash:23003:3:audio_channel_configuration:2011" value="${channels}"/></Representation></AdaptationSet>`;
const mpd = (...sets: string[]) => `<MPD><Period>${sets.join("")}</Period></MPD>`;
const VIDEO = '<AdaptationSet contentType="video"><Representation id="v"/></AdaptationSet>';

test("a DASH manifest loses the sets with more than two channels, and nothing else", () => {
  const typed = set("6", 'mimeType="audio/mp4"');
  expect(mpdInStereo(mpd(VIDEO, set("2"), set("6"), set("1"), typed))).toBe(mpd(VIDEO, set("2"), set("1")));
});

test.each([
  ["has no other audio", mpd(VIDEO, set("6"))],
  ["has only stereo", mpd(VIDEO, set("2"), set("1"))],
  ["counts in another scheme", mpd(VIDEO, set("2"), set("6").replace("urn:mpeg:dash:23003:3", "urn:x"))],
  ["is not XML", `${mpd(set("2"), set("6"))}<`],
])("a DASH manifest that %s stays as it is", (_, text) => expect(mpdInStereo(text)).toBe(text));
