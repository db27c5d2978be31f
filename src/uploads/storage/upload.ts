import { File } from 'node:buffer';
import { open, unlink } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { GraphQLError, GraphQLScalarType, Kind, type ValueNode } from 'graphql';
import type { UploadedFile, UploadedFileInfo } from '../../../types/uploads.ts';
import { UPLOADED } from '../../core/limits/variables.ts';
import { formatValue } from '../../options/format-value.ts';
import type { Spool } from './spool.ts';
import { readAll, readSpool } from './spool-reader.ts';

const SPECIFICATION = 'https://github.com/jaydenseric/graphql-multipart-request-spec';
// Control characters, lone surrogates, line and paragraph separators, and bidirectional controls, which show
// `gnp.exe` as `exe.png`.
const UNSAFE = /[\p{Cc}\p{Cs}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/gu;
const MAX_FILENAME_BYTES = 255;
const MAX_EXTENSION_LENGTH = 32;

/** An uploaded file, as resolvers receive it. */
export type Upload = UploadedFile;

/**
 * The scalar type of file arguments. Its values come only from file parts of a multipart request, never from
 * JSON values or literals. It cannot be an output type.
 */
export const Upload: GraphQLScalarType<UploadedFile, never> = new GraphQLScalarType<UploadedFile, never>({
  name: 'Upload',
  description: 'A file sent as a part of a multipart request.',
  specifiedByURL: SPECIFICATION,
  parseValue(value) {
    if (isUploadedFile(value)) return value;
    throw new GraphQLError(
      `Upload must be a file part of a multipart request, mapped to a variable (${SPECIFICATION}); got ${formatValue(value)}`,
    );
  },
  parseLiteral(node: ValueNode) {
    throw new GraphQLError(`Upload must be given as a variable, not as a literal (${kindName(node)})`, {
      nodes: node,
    });
  },
  serialize() {
    throw new GraphQLError(
      'Upload is an input type and cannot be returned; return a URL or an object type instead',
    );
  },
});

function kindName(node: ValueNode): string {
  return node.kind === Kind.NULL ? 'null' : node.kind.replace(/Value$/, '').toLowerCase();
}

/**
 * Creates the value for resolvers. Its members are closures, so that `const { createReadStream } = await
 * file` works. It is not a promise, so that `file.filename` works too.
 */
export function createUploadedFile(info: UploadedFileInfo, spool: Spool): UploadedFile {
  const bytes = (): Promise<Buffer<ArrayBuffer>> => handled(readAll(spool));
  const text = (): Promise<string> => handled(bytes().then((all) => new TextDecoder().decode(all)));
  const { filename, mimetype } = info;
  const file: UploadedFile = {
    ...info,
    get size() {
      return spool.complete ? spool.size : undefined;
    },
    createReadStream: (options) => readSpool(spool, options),
    stream: () => Readable.toWeb(readSpool(spool)) as ReturnType<UploadedFile['stream']>,
    text,
    json: () => handled(text().then((all): unknown => JSON.parse(all))),
    bytes: () => handled(bytes().then((all) => new Uint8Array(all.buffer))),
    arrayBuffer: () => handled(bytes().then((all) => all.buffer)),
    toFile: () => handled(bytes().then((all) => new File([all], filename, { type: mimetype }))),
    saveTo: (path) => handled(save(spool, path)),
    toJSON: () => ({ ...info, size: file.size }),
  };
  return Object.defineProperty(file, UPLOADED, { value: true });
}

/** Whether a value is a file of a request. */
function isUploadedFile(value: unknown): value is UploadedFile {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, UPLOADED);
}

/** An aborted request must not turn a promise that is not yet awaited into an unhandled rejection. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

async function save(spool: Spool, path: string | URL): Promise<number> {
  const handle = await open(path, 'wx');
  try {
    await pipeline(readSpool(spool, { highWaterMark: 256 * 1024 }), handle.createWriteStream());
    return spool.size;
  } catch (error) {
    await unlink(path);
    throw error;
  }
}

/**
 * Makes a filename from the client safe for display, storage and headers. multer has decoded the `%0D%0A` of
 * browsers to line breaks, which would be header injection in a Content-Disposition.
 */
export function cleanFilename(raw: string): string {
  const text = raw.replace(UNSAFE, '');
  const base = text.slice(Math.max(text.lastIndexOf('/'), text.lastIndexOf('\\')) + 1).trim();
  if (base === '' || base === '.' || base === '..') return 'unnamed';
  return Buffer.byteLength(base) <= MAX_FILENAME_BYTES ? base : shorten(base);
}

/** Cuts to 255 bytes of UTF-8, between characters, and keeps a short extension. */
function shorten(name: string): string {
  const dot = name.lastIndexOf('.');
  const extension = dot > 0 && name.length - dot <= MAX_EXTENSION_LENGTH ? name.slice(dot) : '';
  let room = MAX_FILENAME_BYTES - Buffer.byteLength(extension);
  let stem = '';
  for (const character of name) {
    room -= Buffer.byteLength(character);
    if (room < 0) break;
    stem += character;
  }
  return stem + extension;
}
