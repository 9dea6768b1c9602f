import { expect, test } from "vitest";
import { mpdWithoutCodecs, withoutCodecs } from "#src/lib/manifests/codec-filter.ts";
import { editMaster } from "#src/lib/manifests/master-edits.ts";
import { editMpd } from "#src/lib/manifests/mpd-edits.ts";

const masterWithout = (text: string, hidden: readonly string[]) => editMaster(text, [withoutCodecs(hidden)]);
const mpdWithout = (text: string, hidden: readonly string[]) => editMpd(text, [mpdWithoutCodecs(hidden)]);
const HIDDEN = ["hvc1", "hev1", "av01"];
const variant = (name: string, codecs: string) =>
  `#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="${codecs}",AUDIO="a"\n\n${name}/list.m3u8\n`;
const frames = (name: string, codec: string) =>
  `#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,CODECS="${codec}",URI="${name}/frames.m3u8"\n`;

test("a master playlist loses the variants and frames of hidden codecs, and nothing else", () => {
  const head = '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="A",URI="audio/list.m3u8"\n';
  const kept = [variant("360p", "avc1.64001e,mp4a.40.2"), variant("audio", "mp4a.40.2"), frames("360p", "avc1.64001e")];
  const text = [
    ...[head, variant("360p-av1", "av01.0.01M.08,mp4a.40.2"), kept[0], variant("x", "mp4a.40.2, hvc1.1.6.L63.90")],
    ...[kept[1], frames("360p-av1", "av01.0.01M.08"), kept[2]],
  ].join("");
  expect(masterWithout(text, HIDDEN).replaceAll("\n\n", "\n")).toBe([head, ...kept].join("").replaceAll("\n\n", "\n"));
  expect(masterWithout(text, [])).toBe(text);
});

const set = (inside: string, attributes = "") =>
  `<AdaptationSet contentType="video"${attributes}>${inside}</AdaptationSet>`;
const one = (id: string, codecs: string) => `<Representation id="${id}" codecs="${codecs}"><A/></Representation>`;
const mpd = (...sets: string[]) => `<MPD><Period>${sets.join("")}</Period></MPD>`;

test.each([
  ["a set of a hidden codec", [set(one("a", "avc1.1")), set(one("b", "av01.0"))], [set(one("a", "avc1.1"))]],
  ["one of a set", [set(one("a", "avc1.1") + one("b", "hvc1.1"))], [set(one("a", "avc1.1"))]],
  ["one without content", [set(`${one("a", "avc1.1")}<Representation codecs="av01.0"/>`)], [set(one("a", "avc1.1"))]],
  ["a set that states the codec for all", [set('<Representation id="a"/>', ' codecs="hev1.1"')], []],
])("a DASH manifest loses %s", (_, sets, left) => expect(mpdWithout(mpd(...sets), HIDDEN)).toBe(mpd(...left)));

test("other sets stay, and a manifest that is not XML stays as it is", () => {
  const text = mpd(set(one("a", "avc1.1")), '<AdaptationSet contentType="image"/>', set(""));
  expect(mpdWithout(text, HIDDEN)).toBe(text);
  const broken = `${mpd(set(one("b", "av01.0")))}<`;
  expect(mpdWithout(broken, HIDDEN)).toBe(broken);
});
