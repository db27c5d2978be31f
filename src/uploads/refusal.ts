import { GraphQLError } from 'graphql';
import { HttpError } from '../http/error.ts';

const BAD_MULTIPART = { code: 'BAD_MULTIPART' };

/** What multer and its parser report, as the answer to the client. No words of the parser get out. */
export function refusalOf(error: unknown): HttpError {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code === 'LIMIT_FIELD_COUNT')
    return new HttpError(413, 'Too many text parts', { code: 'TOO_MANY_FIELDS' });
  if (code === 'LIMIT_FIELD_KEY') return new HttpError(413, 'The name of a part is too long', BAD_MULTIPART);
  if (code === 'MISSING_FIELD_NAME') return new HttpError(400, 'A part has no name', BAD_MULTIPART);
  if (message === 'Multipart: Boundary not found') {
    return new HttpError(400, 'The Content-Type has no boundary', BAD_MULTIPART);
  }
  if (message === 'Unexpected end of form') {
    return new HttpError(400, 'The multipart body ends too early', BAD_MULTIPART);
  }
  return new HttpError(400, 'The multipart body is malformed', BAD_MULTIPART);
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
