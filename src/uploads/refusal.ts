import { GraphQLError } from 'graphql';
import type { UploadedFileInfo } from '../../types/uploads.ts';
import { HttpError } from '../http/reply/http-error.ts';
import { formatValue } from '../options/format-value.ts';
import { tooManyFiles } from './plan.ts';

const BAD_MULTIPART = { code: 'BAD_MULTIPART' };

/** The limits that messages quote. */
interface Limits {
  readonly maxFieldSize: number;
  readonly maxFiles: number;
}

/** What multer and its parser report, as the answer to the client. No words of the parser get out. */
export function refusalOf(error: unknown, { maxFieldSize, maxFiles }: Limits): HttpError {
  const { code, message, field } = error as Partial<Record<string, unknown>>;
  switch (code ?? message) {
    case 'LIMIT_FILE_COUNT':
      return tooManyFiles(maxFiles);
    case 'LIMIT_FIELD_COUNT':
      return new HttpError(413, 'Too many text parts', { code: 'TOO_MANY_FIELDS' });
    case 'LIMIT_FIELD_VALUE':
      return new HttpError(
        413,
        `Multipart field ${formatValue(field)} is larger than ${maxFieldSize} bytes`,
        {
          code: 'FIELD_TOO_LARGE',
        },
      );
    case 'LIMIT_FIELD_KEY':
      return badMultipart('The name of a part is too long');
    case 'MISSING_FIELD_NAME':
      return badMultipart('A part has no name');
    case 'Multipart: Boundary not found':
      return badMultipart('The Content-Type has no boundary');
    case 'Unexpected end of form':
      return badMultipart('The multipart body ends too early');
    default:
      return badMultipart('The multipart body is malformed');
  }
}

const badMultipart = (message: string): HttpError => new HttpError(400, message, BAD_MULTIPART);

export const duplicateField = (name: string): HttpError =>
  badMultipart(`Multipart field ${formatValue(name)} is given twice`);

export const missingField = (name: string): HttpError =>
  badMultipart(`Multipart field ${formatValue(name)} is missing`);

/** Parts made from a Blob have a filename, and so are files. */
export const earlyFile = (name: string): HttpError =>
  name === 'operations' || name === 'map'
    ? badMultipart(`Multipart field "${name}" must be a text part, without a filename`)
    : badMultipart('Files must come after the fields "operations" and "map"');

export const withoutFilename = (name: string): HttpError =>
  badMultipart(`The part ${formatValue(name)} has no filename`);

export const fileMissing = (name: string): HttpError =>
  new HttpError(400, `The file ${formatValue(name)} of the "map" is missing`, { code: 'FILE_MISSING' });

export const fileTooLarge = ({ fieldName }: UploadedFileInfo, limit: number): HttpError =>
  new HttpError(413, `The file ${formatValue(fieldName)} is larger than ${limit} bytes`, {
    code: 'FILE_TOO_LARGE',
  });

export const notAccepted = ({ fieldName }: UploadedFileInfo): HttpError =>
  new HttpError(415, `The file ${formatValue(fieldName)} is of a type that is not accepted`, {
    code: 'FILE_NOT_ACCEPTED',
  });

/** A refusal that comes when resolvers run already, as the error that their readers get. */
export function readerError(error: Error): Error {
  if (!(error instanceof HttpError)) return error;
  const extensions = { code: error.code, http: { status: error.status } };
  return new GraphQLError(error.message, { extensions });
}

const NO_SPACE: readonly unknown[] = ['ENOSPC', 'EDQUOT', 'EFBIG'];

/** A failure to store: no space is a status of its own, anything else is the server's fault. */
export function storageError(error: Error): Error {
  if (!NO_SPACE.includes((error as NodeJS.ErrnoException).code)) return error;
  return new HttpError(507, 'There is no space for the upload', { code: 'NO_SPACE' });
}
