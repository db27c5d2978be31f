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

/** A file part without a filename, whose content is discarded. Browsers send one for an empty input. */
interface UnnamedFilePart {
  readonly kind: 'unnamed-file';
  readonly name: string;
}

export type Part = TextPart | FilePart | UnnamedFilePart;

/** A request with its response. */
export interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

/** The limits of a body, which messages quote. */
export interface FormSettings {
  /** The options, for messages. */
  readonly scope: OptionScope;
  readonly maxRequestBytes: number;
  readonly maxFiles: number;
  readonly maxFields: number;
  readonly maxFieldBytes: number;
  /** The option that limits the text of a part. */
  readonly fieldOption: string;
  /** The time in which `TIMELY_BYTES` have to arrive. */
  readonly deadlines: Deadlines;
  readonly createParser: CreateParser;
}

/** What happens while a body arrives. */
interface FormEvents {
  /** `read` throws the error of a malformed part. */
  readonly take: (read: () => Part) => void;
  readonly end: () => void;
  readonly fail: (error: HttpError) => void;
}

/** An upload may take long, but a client that sends single bytes must not keep its memory and descriptors for days. */
const TIMELY_BYTES = 16 * 1024;
/** RFC 2046 §5.1.1 allows a boundary of 70 characters. Some clients use more, but none needs this many. */
const MAX_CONTENT_TYPE = 512;
const MAX_NAME_LENGTH = 512;
const EMPTY_BOUNDARY = /;\s*boundary=""/i;

/**
 * Parses the body of a request, and returns the function that stops it.
 *
 * @throws HttpError 400, 413 and 415 if the headers of the request show an error.
 */
export function readForm({ req, res }: Exchange, settings: FormSettings, events: FormEvents): () => void {
  const contentType = checkHeaders(req, settings);
  const body = bufferedBody(req, settings.scope);
  if (isAborted(res) || (body === undefined && req.destroyed)) throw clientAborted();
  const parser = settings.createParser(contentType);
  listen(parser, settings, events);
  if (body === undefined) return pipeBody(req, parser, settings, events.fail);
  parser.end(body);
  return () => {};
}

function checkHeaders(req: IncomingMessage, settings: FormSettings): string {
  const { 'content-type': type = '', 'content-encoding': encoding, 'content-length': length } = req.headers;
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new HttpError(415, 'A multipart body must not be compressed', {
      code: 'UNSUPPORTED_ENCODING',
      headers: { 'accept-encoding': 'identity' },
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

/** Pipes the body into the parser within the limits, and returns the function that stops it. */
function pipeBody(
  req: IncomingMessage,
  parser: Writable,
  settings: FormSettings,
  fail: FormEvents['fail'],
): () => void {
  const { deadlines, maxRequestBytes } = settings;
  let received = 0;
  let timely = 0;
  const onTimeout = (): void => fail(timedOut());
  const onData = (chunk: Buffer): void => {
    received += chunk.length;
    if (received > maxRequestBytes) fail(requestTooLarge(settings));
    else if (received - timely >= TIMELY_BYTES) {
      timely = received;
      deadlines.clear(onTimeout);
      deadlines.set(onTimeout);
    }
  };
  const onGone = (): void => fail(clientAborted());
  const stop = (): void => {
    deadlines.clear(onTimeout);
    req.unpipe(parser).off('data', onData).off('end', stop).off('error', onGone).off('close', onGone);
  };
  deadlines.set(onTimeout);
  // The limit is checked before the parser gets the chunk.
  req.on('data', onData).pipe(parser);
  req.on('end', stop).on('error', onGone).on('close', onGone);
  return stop;
}

// multer configures the parser of bodies and part headers. Only the parser is used: multer itself reports errors after it
// has read the whole body, drains it without a limit, collects text until the end, and reads objects out of names. So it
// gets no request, and its listeners are replaced. An emitter with these headers is all that it uses of a request.

/** Creates the parser of a body. */
type CreateParser = (contentType: string) => Writable;

const BUFFER_BYTES = 256 * 1024;

type Middleware = (req: object, res: object, next: (error?: Error) => void) => void;

/** Configures multer, once per handler. */
export function createMulterParser({
  maxFields,
  maxFiles,
  maxFieldBytes,
}: Pick<FormSettings, 'maxFields' | 'maxFiles' | 'maxFieldBytes'>): CreateParser {
  const options = {
    streamHandler(req: object, parser: Writable): void {
      Object.assign(req, { parser: parser.removeAllListeners() });
    },
    defParamCharset: 'utf8',
    highWaterMark: BUFFER_BYTES,
    fileHwm: BUFFER_BYTES,
    limits: { fields: maxFields, files: maxFiles, fieldSize: maxFieldBytes },
  };
  const parse = packages.multer()(options).any() as Middleware;
  return (contentType) => {
    const headers = { 'content-type': contentType, 'transfer-encoding': 'chunked' };
    const req = Object.assign(new EventEmitter(), { headers, parser: undefined as Writable | undefined });
    parse(req, {}, (error) => {
      throw malformedForm(
        error?.message === 'Multipart: Boundary not found'
          ? 'The Content-Type has no boundary'
          : 'The Content-Type is malformed',
      );
    });
    return req.parser as Writable;
  };
}

/** The fields of a part header as the parser gives them. */
interface PartInfo {
  readonly filename?: string;
  readonly mimeType: string;
  readonly encoding: string;
  readonly valueTruncated: boolean;
}

function listen(parser: Writable, settings: FormSettings, { take, end, fail }: FormEvents): void {
  parser
    .on('field', (name: string | undefined, value: string | undefined, info: PartInfo) =>
      take(() => textPart(nameOf(name), value, info, settings)),
    )
    .on('file', (name: string | undefined, stream: Readable, info: PartInfo) => {
      // An `error` event without a listener would end the process.
      stream.on('error', () => {});
      take(() => filePart(nameOf(name), stream, info));
    })
    .on('filesLimit', () => fail(tooManyFiles(settings.maxFiles, settings.scope)))
    .on('fieldsLimit', () => fail(tooManyFields(settings)))
    .on('error', ({ message }) => {
      const isCut = message === 'Unexpected end of form';
      fail(malformedForm(`The multipart body ${isCut ? 'ends too early' : 'is malformed'}`));
    })
    .on('close', end);
}

function nameOf(given: string | undefined): string {
  if (given === undefined) throw malformedForm('A part has no name');
  if (given.length > MAX_NAME_LENGTH) throw malformedForm('The name of a part is too long');
  return decodeName(given);
}

/** Browsers encode three characters of a name (HTML, multipart/form-data encoding algorithm), and leave `%` as it is. */
const decodeName = (name: string): string =>
  name.replace(/%(?:0A|0D|22)/gi, (encoded) => decodeURIComponent(encoded));

function textPart(
  name: string,
  value: string | undefined,
  { valueTruncated }: PartInfo,
  settings: FormSettings,
): TextPart {
  if (valueTruncated) throw fieldTooLarge(name, settings);
  if (value === undefined)
    throw malformedForm(`The charset of the part ${formatValue(name)} is not supported; send UTF-8`);
  return { kind: 'text', name, value };
}

function filePart(
  name: string,
  stream: Readable,
  { filename, mimeType, encoding }: PartInfo,
): FilePart | UnnamedFilePart {
  if (filename)
    return { kind: 'file', name, filename: decodeName(filename), mimetype: mimeType, encoding, stream };
  stream.resume();
  return { kind: 'unnamed-file', name };
}

export const malformedForm = (message: string): HttpError =>
  new HttpError(400, message, { code: 'BAD_MULTIPART' });

const requestTooLarge = ({ maxRequestBytes, scope }: FormSettings): HttpError =>
  bodyTooLarge(maxRequestBytes, '', byOption('maxRequestBytes', scope));

const tooManyFields = ({ maxFields }: FormSettings): HttpError =>
  new HttpError(413, `A request may have at most ${maxFields} text parts`, { code: 'TOO_MANY_FIELDS' });

const fieldTooLarge = (name: string, { maxFieldBytes, fieldOption }: FormSettings): HttpError =>
  new HttpError(413, `Multipart field ${formatValue(name)} is larger than ${maxFieldBytes} bytes`, {
    code: 'FIELD_TOO_LARGE',
    option: fieldOption,
  });

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
