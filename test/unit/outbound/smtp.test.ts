import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { MailFailure, sendMail } from "#platform/outbound/mail/smtp.ts";
import { until } from "#test/support/descendants.ts";

const MAIL = { to: "ann@example.com", subject: "Hello", text: "Hello.\n" };

/** Sends a line that never ends, byte by byte: no time without an answer is long. */
function drip(socket: Socket, start: string): void {
  socket.write(start);
  const timer = setInterval(() => socket.write("x"), 20);
  socket.once("close", () => clearInterval(timer));
}

test.each(["greeting", "EHLO", "MAIL", "DATA", "."])(
  "a mail server that answers %s slowly is given up",
  async (slow) => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      const answer = (command: string, text: string) =>
        command === slow ? drip(socket, text.replace(" ", "-")) : socket.write(`${text}\r\n`);
      answer("greeting", "220 slow");
      let isData = false;
      socket.on("data", (chunk) => {
        const text = chunk.toString();
        const command = text.split(/[ \r]/)[0] ?? "";
        if (isData) return void (text.endsWith("\r\n.\r\n") && answer(".", "250 taken"));
        isData = command === "DATA";
        answer(command, isData ? "354 send" : "250 yes");
      });
    });
    let connections = 0;
    server.on("connection", (socket) => {
      connections++;
      socket.once("close", () => connections--);
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => void server.close());
    const settings = {
      smtp_url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
      smtp_from: "films@example.com",
    };
    const failure = await sendMail(settings, MAIL, 500).catch((error) => error);
    expect(failure).toBeInstanceOf(MailFailure);
    expect(failure).toMatchObject({ isFinal: false, message: "The mail server did not take the mail within 0.5 s." });
    await until("the connection is closed", () => connections === 0 || null);
  },
);
