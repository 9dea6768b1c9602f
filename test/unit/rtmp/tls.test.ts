import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { RtmpClient } from "#test/support/live/rtmp-client.ts";
import { startRtmp } from "#test/support/live/rtmp-recorder.ts";
import { selfSigned } from "#test/support/live/self-signed.ts";

const fingerprintOf = ({ cert }: { cert: Buffer }) => new X509Certificate(cert).fingerprint256;

async function presented(port: number): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

test("setTls() changes the certificate of new connections; open ones continue", async () => {
  const before = await selfSigned();
  const after = await selfSigned();
  const rtmp = await startRtmp({ tls: before });
  expect(await presented(rtmp.port)).toBe(fingerprintOf(before));
  const client = await RtmpClient.publish(rtmp.port, { tls: true });
  rtmp.server.setTls(after);
  expect(await presented(rtmp.port)).toBe(fingerprintOf(after));
  expect(() => rtmp.server.setTls({ key: before.key, cert: after.cert })).toThrow();
  expect(await presented(rtmp.port)).toBe(fingerprintOf(after));
  expect(rtmp.recorders[0]?.ends).toEqual([]);
  client.destroy();
  expect(await rtmp.recorders[0]?.ended).toBe("disconnected");
});

test("plain RTMP to a server with TLS only closes its connection", async () => {
  const rtmp = await startRtmp({ tls: await selfSigned() });
  const client = await RtmpClient.open(rtmp.port);
  client.write(Buffer.from([3]), Buffer.alloc(1536));
  await client.closed;
  await expect.poll(() => rtmp.server.connections).toBe(0);
  await RtmpClient.publish(rtmp.port, { tls: true });
});
