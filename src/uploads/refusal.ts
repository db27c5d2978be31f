import { GraphQLError } from 'graphql';
import { HttpError } from '../http/error.ts';
import { show } from '../options/settle.ts';
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
      return new HttpError(413, `Multipart field ${show(field)} is larger than ${maxFieldSize} bytes`, {
        code: 'FIELD_TOO_LARGE',
      });
    case 'LIMIT_FIELD_KEY':
      return new HttpError(413, 'The name of a part is too long', BAD_MULTIPART);
    case 'MISSING_FIELD_NAME':
      return new HttpError(400, 'A part has no name', BAD_MULTIPART);
    case 'Multipart: Boundary not found':
      return new HttpError(400, 'The Content-Type has no boundary', BAD_MULTIPART);
    case 'Unexpected end of form':
      return new HttpError(400, 'The multipart body ends too early', BAD_MULTIPART);
    default:
      return new HttpError(400, 'The multipart body is malformed', BAD_MULTIPART);
  }
}

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
