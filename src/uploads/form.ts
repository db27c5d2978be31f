import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable, Writable } from 'node:stream';
import type { ConnectRequest } from '../../types/connect.ts';
import { packages } from '../diagnostics/packages.ts';
import { bodyTooLarge, timedOut } from '../http/body.ts';
import { HttpError, isAborted } from '../http/reply.ts';
import type { Deadlines } from '../http/timers.ts';
import { byOption, formatValue, type OptionScope } from '../options/rules.ts';

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

/** What the form of a body needs. */
export interface BodySettings {
  /** The options, for messages. */
  readonly scope: OptionScope;
  readonly maxRequestBytes: number;
  /** The time in which `TIMELY_BYTES` have to arrive. */
  readonly deadlines: Deadlines;
  /** Creates the parser of one body, which pushes the parts into a form. */
  readonly createParser: (contentType: string, form: Form) => MulterRequest;
}

/** An upload may take long, but a client that sends single bytes must not keep its memory and descriptors for days. */
const TIMELY_BYTES = 16 * 1024;

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
  settings: BodySettings,
): void {
  const { scope, createParser } = settings;
  const contentType = checkHeaders(req, settings);
  const body = bufferedBody(req, scope);
  if (isAborted(res) || (body === undefined && req.destroyed)) throw clientAborted();
  const parser = createParser(contentType, form);
  const { input } = parser;
  form.stop = () => parser.abort();
  if (input === undefined) return;
  if (body !== undefined) {
    input.end(body);
    return;
  }
  const unpipe = pipeBody(req, input, form, settings);
  form.stop = () => {
    unpipe();
    parser.abort();
  };
}

function checkHeaders(req: IncomingMessage, settings: BodySettings): string {
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
  if (Number(length) > settings.maxRequestBytes) throw requestTooLarge(settings);
  return type;
}

/** Returns the whole body if earlier middleware has stored it: `rawBody` of cloud functions, `express.raw`. */
function bufferedBody(req: IncomingMessage, { name }: OptionScope): Buffer | undefined {
  const { body, rawBody } = req as ConnectRequest & { rawBody?: unknown };
  const buffered = [rawBody, body].find((value) => Buffer.isBuffer(value));
  if (buffered === undefined && req.readableDidRead) {
    throw new Error(
      `Another parser has consumed the multipart body: mount ${name} before multer and other form parsers, and remove graphqlUploadExpress`,
    );
  }
  return buffered;
}

/** Like `req.pipe(input)`, with limits, and with errors that go to the form. Returns the function that stops it. */
function pipeBody(req: IncomingMessage, input: Writable, form: Form, settings: BodySettings): () => void {
  const { deadlines, maxRequestBytes } = settings;
  let received = 0;
  let timely = 0;
  const onTimeout = (): void => void form.fail(timedOut());
  const onData = (chunk: Buffer): void => {
    received += chunk.length;
    if (received - timely >= TIMELY_BYTES) {
      timely = received;
      deadlines.clear(onTimeout);
      deadlines.set(onTimeout);
    }
    if (received > maxRequestBytes) form.fail(requestTooLarge(settings));
    else if (!input.write(chunk)) req.pause();
  };
  const onEnd = (): void => {
    stop();
    input.end();
  };
  const onAbort = (): void => void form.fail(clientAborted());
  const onDrain = (): void => void req.resume();
  const stop = (): void => {
    deadlines.clear(onTimeout);
    req.off('data', onData).off('end', onEnd).off('error', onAbort).off('close', onAbort);
    input.off('drain', onDrain);
  };
  deadlines.set(onTimeout);
  input.on('drain', onDrain);
  req.on('data', onData).on('end', onEnd).on('error', onAbort).on('close', onAbort);
  req.resume();
  return stop;
}

// multer splits the body, decodes names and part headers, and limits parts and text: its storage engine passes files on,
// and its `streamHandler` gets the body. It gets no request, because it would report errors only after it has read the
// whole body, drain it without a limit, and refuse bodies over HTTP/2 without Content-Length.

/** A file as multer passes it to a storage engine. */
interface MulterFile {
  readonly fieldname: string;
  readonly originalname: string;
  readonly encoding: string;
  readonly mimetype: string;
  readonly stream: Readable;
}

const MAX_NAME_LENGTH = 512;
const BUFFER_BYTES = 256 * 1024;

type Middleware = (req: object, res: object, next: (error: unknown) => void) => void;

/** Configures multer, once per handler. */
export function createMulterParser(limits: FormLimits): BodySettings['createParser'] {
  const options = {
    storage: {
      _handleFile(req: object, file: MulterFile, stored: (error: null, info: object) => void): void {
        // An `error` event without a listener would end the process.
        file.stream.on('error', () => {});
        if (req instanceof MulterRequest) req.form.push(filePart(file));
        // The spool stores the content, so multer does not have to wait before it reports the end of the
        // form.
        stored(null, {});
      },
      _removeFile(_req: object, _file: object, removed: (error: null) => void): void {
        removed(null);
      },
    },
    streamHandler(req: object, input: Writable): void {
      if (!(req instanceof MulterRequest)) return;
      req.input = input;
      pushParserEvents(input, req.form, limits);
    },
    defParamCharset: 'utf8',
    highWaterMark: BUFFER_BYTES,
    fileHwm: BUFFER_BYTES,
    limits: {
      fields: limits.maxFields,
      files: limits.maxFiles,
      fieldSize: limits.maxFieldBytes,
      fieldNameSize: MAX_NAME_LENGTH,
      fieldNestingDepth: 0,
    },
  };
  const parse = packages.multer()(options).any() as Middleware;
  return (contentType, form) => {
    const req = new MulterRequest(contentType, form);
    parse(req, {}, (error) => {
      if (error) form.push(formError(error, limits));
      else form.end();
    });
    return req;
  };
}

/** Pushes text parts and limit errors immediately; multer handles both only at the end of the request. */
function pushParserEvents(parser: Writable, form: Form, limits: FormLimits): void {
  const fail = (error: unknown): void => form.push(formError(error, limits));
  parser.on('field', (name: string | undefined, value = '', info: { valueTruncated: boolean }) => {
    if (name === undefined) fail({ code: 'MISSING_FIELD_NAME' });
    else if (info.valueTruncated) fail({ code: 'LIMIT_FIELD_VALUE', field: name });
    else form.push({ kind: 'text', name, value });
  });
  parser.on('file', (name: string | undefined, _stream: Readable, info: { filename?: string }) => {
    if (info.filename) return;
    if (name === undefined) fail({ code: 'MISSING_FIELD_NAME' });
    else form.push({ kind: 'unnamed-file', name });
  });
  parser.on('filesLimit', () => fail({ code: 'LIMIT_FILE_COUNT' }));
  parser.on('fieldsLimit', () => fail({ code: 'LIMIT_FIELD_COUNT' }));
  parser.on('error', fail);
}

function filePart({ fieldname, originalname, mimetype, encoding, stream }: MulterFile): FilePart {
  return { kind: 'file', name: fieldname, filename: originalname, mimetype, encoding, stream };
}

/** The members of a request that multer uses. */
class MulterRequest extends EventEmitter {
  readonly headers: Record<string, string>;
  /** multer drains the request after an error unless it is not readable. */
  readonly readable = false;
  readonly destroyed = false;
  readonly form: Form;
  /** The parser; undefined when it has refused the Content-Type, so that the form has failed. */
  input: Writable | undefined;

  constructor(contentType: string, form: Form) {
    super();
    this.headers = { 'content-type': contentType, 'transfer-encoding': 'chunked' };
    this.form = form;
  }

  unpipe(): void {}

  resume(): void {}

  abort(): void {
    this.emit('aborted');
  }
}

/** The limits of a parser, which messages quote. */
export interface FormLimits {
  readonly scope: OptionScope;
  readonly maxFiles: number;
  readonly maxFields: number;
  readonly maxFieldBytes: number;
  readonly fieldOption: string;
}

/** What is malformed, by the code or the message of an error. */
const MALFORMED = new Map<unknown, string>([
  ['LIMIT_FIELD_KEY', 'The name of a part is too long'],
  ['MISSING_FIELD_NAME', 'A part has no name'],
  ['Multipart: Boundary not found', 'The Content-Type has no boundary'],
  ['Unexpected end of form', 'The multipart body ends too early'],
]);

/** Converts an error of multer or its parser to an HttpError. The client never sees the parser's message. */
function formError(
  error: unknown,
  { maxFiles, maxFields, maxFieldBytes, fieldOption, scope }: FormLimits,
): HttpError {
  const { code, message, field } = error as Partial<Record<string, unknown>>;
  switch (code ?? message) {
    case 'LIMIT_FILE_COUNT':
      return tooManyFiles(maxFiles, scope);
    case 'LIMIT_FIELD_COUNT':
      return new HttpError(413, `A request may have at most ${maxFields} text parts`, {
        code: 'TOO_MANY_FIELDS',
      });
    case 'LIMIT_FIELD_VALUE': {
      const name = formatValue(field);
      return new HttpError(413, `Multipart field ${name} is larger than ${maxFieldBytes} bytes`, {
        code: 'FIELD_TOO_LARGE',
        option: fieldOption,
      });
    }
    default:
      return malformedForm(MALFORMED.get(code ?? message) ?? 'The multipart body is malformed');
  }
}

export const malformedForm = (message: string): HttpError =>
  new HttpError(400, message, { code: 'BAD_MULTIPART' });

const requestTooLarge = ({ maxRequestBytes, scope }: BodySettings): HttpError =>
  bodyTooLarge(maxRequestBytes, '', byOption('maxRequestBytes', scope));

export const tooManyFiles = (maxFiles: number, scope: OptionScope, field?: string): HttpError => {
  const place = field === undefined ? '' : ` in the field ${formatValue(field)}`;
  const option = byOption(field === undefined ? 'maxFiles' : 'files', scope);
  return new HttpError(413, `A request may have at most ${maxFiles} files${place}`, {
    code: 'TOO_MANY_FILES',
    option,
  });
};

/**
 * Creates the rejection for the promises and streams of resolvers. It is never sent, since the client has
 * disconnected.
 */
export const clientAborted = (): HttpError =>
  new HttpError(400, 'The client closed the connection before the upload was complete', {
    code: 'CLIENT_GONE',
  });
