import { createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { type App, forApp } from "#app.ts";
import { createKeyedLock, invalid } from "#lib/base";
import type { SigningKeyRow } from "#storage/db/schema.ts";

export type Algorithm = SigningKeyRow["algorithm"];
/** PEM: SubjectPublicKeyInfo (RFC 5280, 4.1.2.7). */
export type PublicHalf = { algorithm: Algorithm; publicKey: string };

const RSA_BITS = 2048;
const MAX_RSA_BITS = 8192;
/** FIPS 186-5, 5.1 defines the minimum; above the maximum a verification would cost as much as a signature. */
const EXPONENTS = { least: 65_537n, most: 2n ** 32n };

const generate = promisify(generateKeyPair);
const locks = forApp(() => createKeyedLock<"pair">());

/**
 * Generates a key pair; the private key is base64 of its PKCS#8 PEM (RFC 5958), as in Mux, and is not stored.
 * Sequentially: each takes a thread of the pool for a tenth of a second or more, and file access needs those threads.
 */
export const createKeyPair = (app: App, algorithm: Algorithm): Promise<PublicHalf & { privateKey: string }> =>
  locks(app)("pair", async () => {
    const { publicKey, privateKey } =
      algorithm === "RS256" ? await generate("rsa", { modulusLength: RSA_BITS }) : await generate("ed25519");
    const pem = privateKey.export({ type: "pkcs8", format: "pem" });
    return { algorithm, publicKey: spki(publicKey), privateKey: Buffer.from(pem).toString("base64") };
  });

/** A public key from a client, as PEM or base64 of it. Throws 422, which never repeats the input. */
export function readPublicKey(text: string, requested: Algorithm | undefined): PublicHalf {
  const pem = text.includes("-----BEGIN") ? text : Buffer.from(text, "base64").toString("utf8");
  // Node would extract the public key, and the owner would not learn that the private key was disclosed.
  if (/PRIVATE KEY/.test(pem))
    return invalid(
      "public_key",
      "is a private key; it was not stored. Send the public key: openssl pkey -in key.pem -pubout",
    );
  const key = parsed(pem);
  const algorithm = algorithmOf(key);
  if (requested !== undefined && requested !== algorithm)
    return invalid("algorithm", `is ${requested}, but the public key is for ${algorithm}`);
  return { algorithm, publicKey: spki(key) };
}

const spki = (key: KeyObject) => key.export({ type: "spki", format: "pem" }).toString();

function parsed(pem: string): KeyObject {
  const wrong = "must be a public key as PEM (-----BEGIN PUBLIC KEY-----), or base64 of that";
  if (!/^\s*-----BEGIN (RSA )?PUBLIC KEY-----/.test(pem)) return invalid("public_key", wrong);
  try {
    return createPublicKey(pem);
  } catch {
    return invalid("public_key", wrong);
  }
}

function algorithmOf({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): Algorithm {
  if (asymmetricKeyType === "ed25519") return "EdDSA";
  if (asymmetricKeyType !== "rsa") return invalid("public_key", "must be an RSA or Ed25519 key");
  const { modulusLength: bits = 0, publicExponent = 0n } = asymmetricKeyDetails ?? {};
  if (bits < RSA_BITS || bits > MAX_RSA_BITS)
    return invalid("public_key", `is an RSA key of ${bits} bits; it must have ${RSA_BITS} to ${MAX_RSA_BITS}`);
  if (publicExponent < EXPONENTS.least || publicExponent > EXPONENTS.most)
    return invalid("public_key", `is an RSA key with an unusual public exponent; use ${EXPONENTS.least}`);
  return "RS256";
}
