// The adapter for multer. It uses multer's middleware as a parser only: splitting the body, decoding names
// and part headers, and the limits of parts and text. Three things are replaced:
// - Errors. multer calls `next(error)` after it has read the whole request, so a client that waits for its
//   413 would wait forever (multer issue 344). The adapter uses the events of multer's parser; the later
//   `next(error)` only repeats them.
// - The request. multer sets `body` and `files` on it, drains it without a limit after an error, and does not
//   recognise a body over HTTP/2 that has neither Content-Length nor Transfer-Encoding. `MulterRequest`
//   replaces it.
// - The storage. multer's disk storage needs file names and may not delete its files (CVE-2026-5038); see
//   ../storage.

import { EventEmitter } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { type FormLimits, formError } from './errors.ts';
import type { CreateParser, FilePart, Form, FormParser } from './form.ts';

/** A file as multer passes it to a storage engine. */
interface MulterFile {
  readonly fieldname: string;
  readonly originalname: string;
  readonly encoding: string;
  readonly mimetype: string;
  readonly stream: Readable;
}

/** `operations`, `map`, and a few parts that are ignored. */
const MAX_TEXT_PARTS = 10;
const MAX_NAME_LENGTH = 512;
const BUFFER_BYTES = 256 * 1024;

type Middleware = (req: object, res: object, next: (error: unknown) => void) => void;

/** Loads and configures multer, once per handler. */
export async function loadMulterParser(limits: FormLimits): Promise<CreateParser> {
  const { default: multer } = await import('multer');
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
      fields: MAX_TEXT_PARTS,
      files: limits.maxFiles,
      fieldSize: limits.maxFieldSize,
      fieldNameSize: MAX_NAME_LENGTH,
      fieldNestingDepth: 0,
    },
  };
  const parse = multer(options).any() as Middleware;
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
  parser.on('field', (name: string | undefined, value: string, info: { valueTruncated: boolean }) => {
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
class MulterRequest extends EventEmitter implements FormParser {
  readonly headers: Record<string, string>;
  /** multer drains the request after an error unless it is not readable. */
  readonly readable = false;
  readonly destroyed = false;
  readonly form: Form;
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
