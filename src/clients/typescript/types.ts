import type { operations } from "../../../build/client/api.d.ts";

export type OperationId = keyof operations;
type Simplify<T> = { [Key in keyof T]: T[Key] };

type Path<Id extends OperationId> = operations[Id]["parameters"] extends { path: infer P } ? P : unknown;
type Query<Id extends OperationId> = operations[Id]["parameters"] extends { query?: infer Q }
  ? [Q] extends [undefined]
    ? unknown
    : NonNullable<Q>
  : unknown;
type Headers<Id extends OperationId> = operations[Id]["parameters"] extends { header: infer H }
  ? Omit<H, "Idempotency-Key">
  : unknown;

/** In a form, files are blobs and other fields may be of any simple type. */
type Form<Fields> = FormData | { [Field in keyof Fields]: Field extends "file" ? Blob | string : Fields[Field] };
type Bytes = Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
type BodyIn<Content> = {
  [Type in keyof Content]: Type extends "multipart/form-data"
    ? Form<Content[Type]>
    : Type extends "application/octet-stream"
      ? Bytes
      : Type extends `image/${string}`
        ? Blob
        : Content[Type];
}[keyof Content];
type Body<Id extends OperationId> = operations[Id] extends { requestBody: { content: infer Content } }
  ? { body: BodyIn<Content> }
  : operations[Id] extends { requestBody?: { content: infer Content } }
    ? { body?: BodyIn<Content> }
    : unknown;

/** Path, query and header parameters of an operation by name, and its `body`. */
export type Params<Id extends OperationId> = Simplify<Path<Id> & Query<Id> & Headers<Id> & Body<Id>>;

type Success = 200 | 201 | 202 | 204;
type ContentOf<Response> = Response extends { content: infer Content } ? Content[keyof Content] : undefined;
type Responses<Id extends OperationId> = operations[Id]["responses"];
/** What an operation returns; undefined where there is no body. */
export type Result<Id extends OperationId> = {
  [Status in keyof Responses<Id>]: Status extends Success ? ContentOf<Responses<Id>[Status]> : never;
}[keyof Responses<Id>];
/** An element of what a list returns. */
export type Item<Id extends OperationId> = Result<Id> extends (infer Element)[] ? Element : never;
