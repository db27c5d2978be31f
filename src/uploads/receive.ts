import type { IncomingMessage, ServerResponse } from 'node:http';
import { drainRequest } from '../http/body/drain.ts';
import { HttpError } from '../http/reply/http-error.ts';
import { debug } from '../logging/debug.ts';
import { bodyTooLarge, clientGone, createFeed, keptBody } from './feed.ts';
import { Intake } from './intake.ts';
import type { CheckOperations } from './plan.ts';
import type { UploadSettings } from './settings.ts';

/** What a multipart request came to. */
export interface ReceivedUploads {
  /** The parsed `operations`, with an uploaded file in each mapped place. */
  operations: unknown;
}

/**
 * Receives a request of the GraphQL multipart request specification. Rejects with an HttpError for every fault of the
 * client, at once even while the client is still sending (the rest is then drained), and with a plain error for a fault
 * of the server. `check` sees the operations before the files come. Files are given up when the response closes.
 */
export function receiveUploads(
  req: IncomingMessage,
  res: ServerResponse,
  settings: UploadSettings,
  check: CheckOperations,
): Promise<ReceivedUploads> {
  return new Promise((resolve, reject) => {
    const feed = createFeed(req, settings.maxRequestSize, refuse);
    let abort = (): void => {};
    let refused = false;
    const intake = new Intake(settings, check, {
      run: (operations) => resolve({ operations }),
      refuse,
    });

    function refuse(error: Error): void {
      if (refused) return;
      refused = true;
      debug.uploads('%s', error.message);
      intake.stop(error);
      stop();
      reject(error);
    }

    function stop(): void {
      feed.stop();
      abort();
      drainRequest(req, res);
    }

    res.once('close', () => {
      intake.release();
      if (!refused) stop();
    });
    try {
      const contentType = checkHead(req, settings);
      const body = bodyOf(req);
      if (res.destroyed || (body === undefined && req.destroyed)) throw clientGone();
      const form = settings.parseForm(contentType, intake, (parser) => {
        if (body === undefined) feed.start(parser);
        else parser.end(body);
      });
      abort = form.abort;
      if (refused) abort();
    } catch (error) {
      refuse(error as Error);
    }
  });
}

/** RFC 2046 §5.1.1 allows 70 characters in a boundary; clients use more, but no one needs as many as fit in a header. */
const MAX_CONTENT_TYPE = 512;
const EMPTY_BOUNDARY = /;\s*boundary=(?:"")?\s*(?:;|$)/i;

/** What can be refused with nothing read. */
function checkHead(req: IncomingMessage, settings: UploadSettings): string {
  const { 'content-type': type = '', 'content-encoding': encoding, 'content-length': length } = req.headers;
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    const headers = { 'accept-encoding': 'identity' };
    throw new HttpError(415, 'A multipart body must not be compressed', {
      code: 'UNSUPPORTED_ENCODING',
      headers,
    });
  }
  if (type.length > MAX_CONTENT_TYPE || EMPTY_BOUNDARY.test(type)) {
    throw new HttpError(400, 'The boundary in the Content-Type is malformed', { code: 'BAD_MULTIPART' });
  }
  if (Number(length) > settings.maxRequestSize) throw bodyTooLarge(settings.maxRequestSize);
  return type;
}

/** A body that something in front has read, if it kept it; undefined for a body still to come. */
function bodyOf(req: IncomingMessage): Buffer | undefined {
  const kept = keptBody(req);
  if (kept === undefined && req.readableDidRead) {
    throw new Error(
      'The multipart body was read before graphqlHTTP got it: mount graphqlHTTP before multer and other parsers of forms',
    );
  }
  return kept;
}
