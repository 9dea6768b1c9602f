import { expect, test } from "vitest";
import { identifierFaults } from "#scripts/lint-terms/identifiers.ts";

const found = (text: string, path = "src/live/a.ts") => identifierFaults(path, text).length > 0;

test.each([
  "const pictures = 1;",
  "const isPicture = true;",
  "function chooseSound() {}",
  "const FAULTS_TOLD = 5;",
  "type Told = string;",
  "class Broadcast {}",
  "class A { #broadcastOf() {} }",
  "const { turn } = request;",
])("`npm run lint:terms` refuses `%s`", (text) => expect(found(text)).toBe(true));

test.each([
  ["a field that is sent", "const fields = { sound_seconds: 1 };"],
  ["a setting", 'const env = { VODBOX_RATE_LIMIT_PICTURES: "1/1" };'],
  ["a field of another API", "const thumbnails = record(video.pictures);"],
  ["a name of browsers", "document.exitPictureInPicture(); const pictureInPicture = 1;"],
  ["another word", "const returned = turnover(saturation);"],
])("it accepts %s", (_, text) => expect(found(text)).toBe(false));

test("a message to all processes is a broadcast", () => {
  expect(found("type Broadcast = string;", "src/platform/cluster/messages.ts")).toBe(false);
});

test("tests have no broadcasts either, and their images may be pictures", () => {
  expect(found("const broadcast = 1;", "test/api/live/a.test.ts")).toBe(true);
  expect(found("const picture = 1;", "test/api/live/a.test.ts")).toBe(false);
});
