import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import type { ConnectRequest } from '../../../types/connect.ts';
import { bodyTooLarge } from '../../http/body/read-body.ts';
import { HttpError } from '../../http/reply/http-error.ts';
import { isAborted } from '../../http/reply/response-state.ts';
import { clientAborted, malformedForm } from './errors.ts';

/** A text part of a form. */
export interface TextPart {
  readonly kind: 'text';
  readonly name: string;
  readonly value: string;
}

/** A file part with the fields of its header. Its stream must be read, otherwise the parser stops. */
export interface FilePart {
  readonly kind: 'file';
  readonly name: string;
  readonly filename: string;
  readonly mimetype: string;
  readonly encoding: string;
  readonly stream: Readable;
}

/** A file part without a filename. The parser discards its content. */
interface UnnamedFilePart {
  readonly kind: 'unnamed-file';
  readonly name: string;
}

export type Part = TextPart | FilePart | UnnamedFilePart;

/** The parser of one body. It pushes the parts into a form. */
export interface FormParser {
  /** Undefined when the Content-Type was refused; the form has then failed. */
  readonly input: Writable | undefined;
  abort(): void;
}

/** Creates the parser of one body; its parts go to the form. */
export type CreateParser = (contentType: string, form: Form) => FormParser;

interface BodySettings {
  readonly maxRequestSize: number;
  readonly createParser: CreateParser;
}

/** RFC 2046 §5.1.1 allows a boundary of 70 characters. Some clients use more, but none needs this many. */
const MAX_CONTENT_TYPE = 512;
const EMPTY_BOUNDARY = /;\s*boundary=(?:"")?\s*(?:;|$)/i;

/** The parts of one multipart body, in order. The parser pushes parts, `next` removes them. */
export class Form {
  /** Stops the parser and detaches it from the request. */
  stop: () => void = () => {};

  /** The parser's limits of text and file parts bound the queue. */
  readonly #queue: (Part | Error)[] = [];
  #ended = false;
  #failure: Error | undefined;
  #wake: () => void = () => {};

  /** Adds a part, or the error that follows the parts before it. */
  push(item: Part | Error): void {
    if (this.#failure !== undefined) return;
    this.#queue.push(item);
    this.#wake();
  }

  /** Marks the form as complete. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** Ends the form with an error and drops queued parts. Keeps and returns the first error. */
  fail(error: Error): Error {
    if (this.#failure === undefined) {
      this.#failure = error;
      this.#queue.length = 0;
      this.stop();
      this.#wake();
    }
    return this.#failure;
  }

  /** Returns the next part, or undefined after the last. Rejects with the error that ended the form. */
  async next(): Promise<Part | undefined> {
    for (;;) {
      const item = this.#queue.shift();
      if (item instanceof Error) throw this.fail(item);
      if (item !== undefined) return item;
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

/**
 * Starts to parse a request's body into a form.
 *
 * @throws HttpError 400, 413 and 415 if the headers of the request show an error.
 */
export function openForm(
  form: Form,
  req: IncomingMessage,
  res: ServerResponse,
  { maxRequestSize, createParser }: BodySettings,
): void {
  const contentType = checkHeaders(req, maxRequestSize);
  const body = bufferedBody(req);
  if (isAborted(res) || (body === undefined && req.destroyed)) throw clientAborted();
  const parser = createParser(contentType, form);
  const { input } = parser;
  form.stop = () => parser.abort();
  if (input === undefined) return;
  if (body !== undefined) {
    input.end(body);
    return;
  }
  const unpipe = pipeBody(req, input, form, maxRequestSize);
  form.stop = () => {
    unpipe();
    parser.abort();
  };
}

function checkHeaders(req: IncomingMessage, maxRequestSize: number): string {
  const { 'content-type': type = '', 'content-encoding': encoding, 'content-length': length } = req.headers;
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    const headers = { 'accept-encoding': 'identity' };
    throw new HttpError(415, 'A multipart body must not be compressed', {
      code: 'UNSUPPORTED_ENCODING',
      headers,
    });
  }
  if (type.length > MAX_CONTENT_TYPE || EMPTY_BOUNDARY.test(type)) {
    throw malformedForm('The boundary in the Content-Type is malformed');
  }
  if (Number(length) > maxRequestSize) throw bodyTooLarge(maxRequestSize);
  return type;
}

/**
 * Returns the whole body if earlier middleware has stored it: `rawBody` of cloud functions, `express.raw`.
 */
function bufferedBody(req: IncomingMessage): Buffer | undefined {
  const { body, rawBody } = req as ConnectRequest & { rawBody?: unknown };
  const buffered = [rawBody, body].find((value) => Buffer.isBuffer(value));
  if (buffered === undefined && req.readableDidRead) {
    throw new Error(
      'Another parser has consumed the multipart body: mount graphqlHTTP before multer and other form parsers, and remove graphqlUploadExpress',
    );
  }
  return buffered;
}

/**
 * Like `req.pipe(input)`, with a limit and with errors that go to the form. Returns the function that stops
 * it.
 */
function pipeBody(req: IncomingMessage, input: Writable, form: Form, maxBytes: number): () => void {
  let received = 0;
  const onData = (chunk: Buffer): void => {
    received += chunk.length;
    if (received > maxBytes) form.fail(bodyTooLarge(maxBytes));
    else if (!input.write(chunk)) req.pause();
  };
  const onEnd = (): void => {
    stop();
    input.end();
  };
  const onAbort = (): void => void form.fail(clientAborted());
  const onDrain = (): void => void req.resume();
  const stop = (): void => {
    req.off('data', onData).off('end', onEnd).off('error', onAbort).off('close', onAbort);
    input.off('drain', onDrain);
  };
  input.on('drain', onDrain);
  req.on('data', onData).on('end', onEnd).on('error', onAbort).on('close', onAbort);
  req.resume();
  return stop;
}
