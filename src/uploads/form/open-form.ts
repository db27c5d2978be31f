import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import type { ConnectRequest } from '../../../types/connect.ts';
import { HttpError } from '../../http/reply/http-error.ts';
import { isAborted } from '../../http/reply/on-closed.ts';
import { bodyTooLarge, clientAborted, malformedForm } from './errors.ts';
import type { Form } from './form.ts';
import type { CreateParser } from './multer.ts';

interface BodySettings {
  readonly maxRequestSize: number;
  readonly createParser: CreateParser;
}

/** RFC 2046 §5.1.1 allows a boundary of 70 characters. Some clients use more, but none needs this many. */
const MAX_CONTENT_TYPE = 512;
const EMPTY_BOUNDARY = /;\s*boundary=(?:"")?\s*(?:;|$)/i;

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

/** Returns the whole body if earlier middleware has stored it: `rawBody` of cloud functions, `express.raw`. */
function bufferedBody(req: IncomingMessage): Buffer | undefined {
  const { body, rawBody } = req as ConnectRequest & { rawBody?: unknown };
  const buffered = [rawBody, body].find((value) => Buffer.isBuffer(value));
  if (buffered === undefined && req.readableDidRead) {
    throw new Error(
      'Another parser has consumed the multipart body: mount graphqlHTTP before multer and other form parsers',
    );
  }
  return buffered;
}

/** Like `req.pipe(input)`, with a limit and with errors that go to the form. Returns the function that stops it. */
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
