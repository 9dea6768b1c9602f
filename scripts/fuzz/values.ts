/** Unexpected values. */

const deep = (open: string, close: string, levels: number) => `${open.repeat(levels)}1${close.repeat(levels)}`;

// biome-ignore format: lists to be read, not columns.
export const VALUES: readonly unknown[] = [
  null, true, false, 0, -1, 0.5, 1e308, -1e308, 2 ** 53, 2 ** 31, "", " ", "\0", "a\0b", "\ud800", "é".normalize("NFD"),
  "x".repeat(70_000), "../../etc/passwd", "..\\..\\x", "%2e%2e%2f", "'; DROP TABLE assets; --", "=1+1", "\u202eabc", "\ufeff",
  [], {}, [[]], [null], [{}], ["x"], { id: 1 }, { constructor: { prototype: {} } }, "2026-02-30T25:00:00Z", "9".repeat(400), "NaN",
  "true", "1", "http://169.254.169.254/", "file:///etc/passwd", "tenants/1/../2/x", "/etc/passwd", "C:\\x", "vid_x", "en-US",
];
// biome-ignore format: as above.
export const SEGMENTS: readonly string[] = [
  "0", "-1", "1e3", "0x10", "9".repeat(30), "%00", "a%00b", "..", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%ff%fe",
  "%E0%A4%A", "x".repeat(3000), "%F0%9F%98%80", "null", "undefined", "__proto__", "1;2", "*", "%20", "1%2F2", "'", '"', "<x>",
];
// biome-ignore format: as above.
export const TYPES: readonly string[] = [
  "application/offset+octet-stream",
  "application/json", "application/json; charset=utf-16", "text/plain", "application/xml", "multipart/form-data", "text/csv",
  "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "", "application/vnd.api+json", "é",
];
// biome-ignore format: as above.
export const RAW: readonly (string | Uint8Array)[] = [
  "", "{", "[", "nul", '"text"', "null", "[1,2", "{}{}", '{"a":1,"a":2}', '{"__proto__":{"x":1}}', "\ufeff{}", "\0",
  deep("[", "]", 100_000), deep('{"a":', "}", 100_000), `{"a":"${"y".repeat(1_200_000)}"}`, new Uint8Array([0xff, 0xfe, 0x7b]),
  new Uint8Array([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]),
  "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.srt\"\r\n\r\n1\r\n00:00",
  "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../../a.vtt\"\r\n\r\nWEBVTT\r\n\r\n--x--\r\n",
  `--x\r\n${"A: b\r\n".repeat(20_000)}\r\n--x--\r\n`, "title,original_filename\r\n\"a\r\n", "a,b\r\n1,2,3\r\n\0,\r\n",
];
/** Values of headers that some routes read. */
export const HEADERS: Readonly<Record<string, readonly string[]>> = {
  "idempotency-key": ["", "k", "x".repeat(256), "x".repeat(255), "é"],
  range: ["bytes=0-0", "bytes=-1", "bytes=9-1", "lines=1-2", "bytes=0-,5-", `bytes=${"0-1,".repeat(500)}`],
  "content-range": ["bytes 0-1/2", "bytes */2", "x", "bytes 0-999999999999999/999999999999999"],
  "if-none-match": ["*", '"x"', `"${"a,".repeat(2000)}"`],
  "accept-encoding": ["br;q=2", "gzip;q=0.0001", "identity;q=0, *;q=0", `gzip,${",".repeat(3000)}`],
  "accept-language": ["en;q=x", `${"a-".repeat(3000)}`],
  "tus-resumable": ["1.0.0", "1"],
  "upload-offset": ["0", "1", "-1", "x", "9007199254740993"],
  "upload-length": ["10", "-1", "9007199254740993"],
  "upload-metadata": ["", "filename YQ==", "a b c", ",", `a ${"=".repeat(8000)}`],
  "upload-checksum": ["sha1 x", "sha1", "crc", "md5 "],
  "x-http-method-override": ["PATCH", "DELETE", "HEAD", "x"],
  "x-forwarded-for": ["1.2.3.4", "x", ",,,", "::1, 1.2.3.4"],
  origin: ["null", "https://example.com", "x"],
  "x-svc-batch-token": ["", "x"],
  "x-svc-job-lease-token": ["", "x"],
  "x-svc-job-attempt-id": ["", "1", "x"],
  "x-svc-simulated-event": ["order.paid", "x"],
};
