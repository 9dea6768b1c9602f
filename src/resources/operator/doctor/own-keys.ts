const name24 = "[A-Za-z0-9]{24}";

/** Every kind of key that this program gives. What else lies in storage was put there by somebody else. */
const OURS = new RegExp(
  `^(?:tenants/\\d+/(?:${[
    `sources/${name24}(?:\\.[a-z0-9]{1,8})?`,
    "assets/\\d+/\\d+-\\d+/.+",
    `assets/\\d+/subtitles/${name24}\\.vtt`,
    "assets/\\d+/pictures/[0-9a-f]{16}/[^/]+",
    `delivered/${name24}/.+`,
    `ingest/${name24}/.+`,
  ].join("|")})|vodbox-check(?:-[0-9a-f]{12})?)$`,
);

/** Whether `key` has a name of ours: nothing else is ever removed. */
export const isOwnKey = (key: string): boolean => OURS.test(key);
