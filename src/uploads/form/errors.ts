import { HttpError } from '../../http/reply/http-error.ts';
import { formatValue } from '../../options/format-value.ts';

/** The limits that messages quote. */
export interface FormLimits {
  readonly maxFiles: number;
  readonly maxFieldSize: number;
}

/** Converts an error of multer or its parser to an HttpError. The client never sees the parser's message. */
export function formError(error: unknown, { maxFiles, maxFieldSize }: FormLimits): HttpError {
  const { code, message, field } = error as Partial<Record<string, unknown>>;
  switch (code ?? message) {
    case 'LIMIT_FILE_COUNT':
      return tooManyFiles(maxFiles);
    case 'LIMIT_FIELD_COUNT':
      return new HttpError(413, 'Too many text parts', { code: 'TOO_MANY_FIELDS' });
    case 'LIMIT_FIELD_VALUE': {
      const name = formatValue(field);
      return new HttpError(413, `Multipart field ${name} is larger than ${maxFieldSize} bytes`, {
        code: 'FIELD_TOO_LARGE',
      });
    }
    case 'LIMIT_FIELD_KEY':
      return malformedForm('The name of a part is too long');
    case 'MISSING_FIELD_NAME':
      return malformedForm('A part has no name');
    case 'Multipart: Boundary not found':
      return malformedForm('The Content-Type has no boundary');
    case 'Unexpected end of form':
      return malformedForm('The multipart body ends too early');
    default:
      return malformedForm('The multipart body is malformed');
  }
}

export const malformedForm = (message: string): HttpError =>
  new HttpError(400, message, { code: 'BAD_MULTIPART' });

export const tooManyFiles = (maxFiles: number): HttpError =>
  new HttpError(413, `A request may have at most ${maxFiles} files`, { code: 'TOO_MANY_FILES' });

/**
 * Creates the rejection for the promises and streams of resolvers. It is never sent, since the client has
 * disconnected.
 */
export const clientAborted = (): HttpError =>
  new HttpError(400, 'The client closed the connection before the upload was complete', {
    code: 'CLIENT_GONE',
  });
