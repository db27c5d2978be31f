import { EventEmitter } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import multer from 'multer';

/** A file part as multer hands it to a storage engine. */
export interface FilePart {
  readonly fieldname: string;
  readonly originalname: string;
  readonly encoding: string;
  readonly mimetype: string;
  readonly stream: Readable;
}

/** Who is told what a form contains, as it comes. Calls may still come after `abort`. */
export interface FormHandlers {
  /** A text part; `truncated` when it is longer than allowed. */
  field(name: string | undefined, value: string, truncated: boolean): void;
  /** A file part; `stored` is called when its stream was taken in. */
  file(part: FilePart, stored: () => void): void;
  /** A file part without a filename; its content is skipped. */
  unnamed(name: string | undefined): void;
  /** The form is complete and every file was stored. */
  end(): void;
  /** The form cannot be parsed or has too many parts. */
  fail(error: unknown): void;
}

/** Begins to parse a form: `feed` is given the parser to write the body to. */
export type ParseForm = (
  contentType: string,
  handlers: FormHandlers,
  feed: (parser: Writable) => void,
) => { abort(): void };

interface FormLimits {
  readonly maxFiles: number;
  readonly maxFieldSize: number;
}

interface FieldInfo {
  readonly valueTruncated: boolean;
}

/** `operations`, `map` and a few parts of no interest. */
const MAX_FIELDS = 10;
const MAX_NAME = 512;
const PARSER_BUFFER = 256 * 1024;

/**
 * multer as nothing but a parser: the body is fed to it, and parts are told as soon as their header is known. Its own way
 * with errors, waiting for the end of the request before telling, would leave a client without its 413 (multer #344), so
 * the parser's events are listened to directly; what multer reports later repeats them.
 */
export function createFormParser(limits: FormLimits): ParseForm {
  const sessions = new WeakMap<object, { handlers: FormHandlers; feed: (parser: Writable) => void }>();
  const options = {
    storage: {
      _handleFile(source: object, part: FilePart, done: (error: null, info: object) => void): void {
        sessions.get(source)?.handlers.file(part, () => done(null, {}));
      },
      _removeFile(_source: object, _part: object, done: (error: null) => void): void {
        done(null);
      },
    },
    streamHandler(source: object, parser: Writable): void {
      const session = sessions.get(source);
      if (session === undefined) return;
      listen(parser, session.handlers);
      session.feed(parser);
    },
    defParamCharset: 'utf8',
    highWaterMark: PARSER_BUFFER,
    fileHwm: PARSER_BUFFER,
    limits: {
      fields: MAX_FIELDS,
      files: limits.maxFiles,
      fieldSize: limits.maxFieldSize,
      fieldNameSize: MAX_NAME,
      fieldNestingDepth: 0,
    },
  };
  const parse = multer(options).any() as (
    source: object,
    res: object,
    next: (error: unknown) => void,
  ) => void;
  return (contentType, handlers, feed) => {
    const source = new FormSource(contentType);
    sessions.set(source, { handlers, feed });
    parse(source, {}, (error) => {
      if (error) handlers.fail(error);
      else handlers.end();
    });
    return { abort: () => source.emit('aborted') };
  };
}

function listen(parser: Writable, handlers: FormHandlers): void {
  parser.on('field', (name: string | undefined, value: string, info: FieldInfo) =>
    handlers.field(name, value, info.valueTruncated),
  );
  parser.on('file', (name: string | undefined, _stream: Readable, info: { filename?: string }) => {
    if (!info.filename) handlers.unnamed(name);
  });
  parser.on('filesLimit', () => handlers.fail({ code: 'LIMIT_FILE_COUNT' }));
  parser.on('fieldsLimit', () => handlers.fail({ code: 'LIMIT_FIELD_COUNT' }));
  parser.on('error', (error) => handlers.fail(error));
}

/**
 * What multer sees in the place of the request: it puts `body` and `files` here instead of on the user's request, cannot
 * drain the real one without a limit, and finds a body even over HTTP/2, where neither header that it asks for need be there.
 */
class FormSource extends EventEmitter {
  readonly headers: Record<string, string>;
  readonly readable = false;
  readonly destroyed = false;

  constructor(contentType: string) {
    super();
    this.headers = { 'content-type': contentType, 'transfer-encoding': 'chunked' };
  }

  unpipe(): void {}

  resume(): void {}
}
