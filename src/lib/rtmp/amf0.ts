import { RtmpFault } from "./fault.ts";

/** Objects are maps: a key such as `__proto__` is only a key. */
export type AmfValue = number | boolean | string | null | undefined | AmfValue[] | AmfObject;
export type AmfObject = Map<string, AmfValue>;

/** Type markers (AMF 0, 2.1). */
const MARKER = {
  number: 0,
  boolean: 1,
  string: 2,
  object: 3,
  null: 5,
  undefined: 6,
  reference: 7,
  ecmaArray: 8,
  objectEnd: 9,
  strictArray: 10,
  date: 11,
  longString: 12,
  unsupported: 13,
  xmlDocument: 15,
  typedObject: 16,
} as const;

const MAX_DEPTH = 8;
const MAX_VALUES = 256;

/**
 * The values of a message, in order. Dates become milliseconds since 1970, XML documents strings, unsupported values and
 * references undefined. Throws RtmpFault for truncated data, AMF 3, more than 256 values or a depth of more than 8. The
 * length of strings is limited by the message only.
 */
export function decodeAmf0(data: Buffer): AmfValue[] {
  const decoder = new Decoder(data);
  const values: AmfValue[] = [];
  while (!decoder.isAtEnd) values.push(decoder.value(0));
  return values;
}

class Decoder {
  readonly #data: Buffer;
  #at = 0;
  #values = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#data.length;
  }

  value(depth: number): AmfValue {
    if (++this.#values > MAX_VALUES) throw new RtmpFault(`An AMF message has more than ${MAX_VALUES} values.`);
    if (depth > MAX_DEPTH) throw new RtmpFault(`An AMF value is nested more than ${MAX_DEPTH} levels deep.`);
    const marker = this.#data[this.#take(1)] as number;
    switch (marker) {
      case MARKER.number:
        return this.#data.readDoubleBE(this.#take(8));
      case MARKER.boolean:
        return this.#data[this.#take(1)] !== 0;
      case MARKER.string:
        return this.#string(this.#uint16());
      case MARKER.longString:
      case MARKER.xmlDocument:
        return this.#string(this.#uint32());
      case MARKER.object:
        return this.#properties(depth);
      case MARKER.ecmaArray:
        // The count is a hint (2.10): the properties end with a marker.
        this.#take(4);
        return this.#properties(depth);
      case MARKER.typedObject:
        this.#take(this.#uint16());
        return this.#properties(depth);
      case MARKER.strictArray:
        return this.#elements(depth);
      case MARKER.date: {
        const milliseconds = this.#data.readDoubleBE(this.#take(8));
        // A time zone, which is reserved (2.13).
        this.#take(2);
        return milliseconds;
      }
      case MARKER.null:
        return null;
      case MARKER.reference:
        this.#take(2);
        return undefined;
      case MARKER.undefined:
      case MARKER.unsupported:
        return undefined;
      default:
        throw new RtmpFault(`An AMF value has the unknown type ${marker}.`);
    }
  }

  #properties(depth: number): AmfObject {
    const object: AmfObject = new Map();
    for (;;) {
      const name = this.#string(this.#uint16());
      if (name === "" && this.#data[this.#at] === MARKER.objectEnd) {
        this.#at++;
        return object;
      }
      object.set(name, this.value(depth + 1));
    }
  }

  /** The count may be 2^32 − 1: it reserves nothing, and the first value that is absent ends the message. */
  #elements(depth: number): AmfValue[] {
    const elements: AmfValue[] = [];
    for (let rest = this.#uint32(); rest > 0; rest--) elements.push(this.value(depth + 1));
    return elements;
  }

  #string(bytes: number): string {
    const at = this.#take(bytes);
    return this.#data.toString("utf8", at, at + bytes);
  }

  #uint16(): number {
    return this.#data.readUInt16BE(this.#take(2));
  }

  #uint32(): number {
    return this.#data.readUInt32BE(this.#take(4));
  }

  #take(bytes: number): number {
    const at = this.#at;
    if (at + bytes > this.#data.length) throw new RtmpFault("An AMF value is truncated.");
    this.#at = at + bytes;
    return at;
  }
}

/** The value, or an empty string for another type. */
export const stringOf = (value: AmfValue): string => (typeof value === "string" ? value : "");

export const amfObject = (fields: Record<string, AmfValue>): AmfObject => new Map(Object.entries(fields));

export const encodeAmf0 = (...values: AmfValue[]): Buffer => Buffer.concat(values.map(encodeValue));

/** An object as ECMA array (AMF 0, 2.10), the form of metadata. */
export function encodeEcmaArray(object: AmfObject): Buffer {
  const head = Buffer.alloc(5);
  head[0] = MARKER.ecmaArray;
  head.writeUInt32BE(object.size, 1);
  // Both end in the same way.
  return Buffer.concat([head, encodeValue(object).subarray(1)]);
}

function encodeValue(value: AmfValue): Buffer {
  if (value === null) return Buffer.from([MARKER.null]);
  if (value === undefined) return Buffer.from([MARKER.undefined]);
  if (typeof value === "boolean") return Buffer.from([MARKER.boolean, value ? 1 : 0]);
  if (typeof value === "number") {
    const encoded = Buffer.alloc(9);
    encoded.writeDoubleBE(value, 1);
    return encoded;
  }
  if (typeof value === "string") return encodeString(value);
  if (Array.isArray(value)) {
    const head = Buffer.from([MARKER.strictArray, 0, 0, 0, 0]);
    head.writeUInt32BE(value.length, 1);
    return Buffer.concat([head, ...value.map(encodeValue)]);
  }
  const properties = [...value].flatMap(([name, each]) => [encodeName(name), encodeValue(each)]);
  return Buffer.concat([Buffer.from([MARKER.object]), ...properties, Buffer.from([0, 0, MARKER.objectEnd])]);
}

function encodeString(value: string): Buffer {
  const text = Buffer.from(value);
  const isLong = text.length > 0xffff;
  const head = Buffer.alloc(isLong ? 5 : 3);
  head[0] = isLong ? MARKER.longString : MARKER.string;
  if (isLong) head.writeUInt32BE(text.length, 1);
  else head.writeUInt16BE(text.length, 1);
  return Buffer.concat([head, text]);
}

/** Names of properties have at most 65,535 bytes. */
const encodeName = (name: string) => encodeString(name).subarray(1);
