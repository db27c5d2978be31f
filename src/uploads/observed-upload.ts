import type { IncomingMessage } from 'node:http';
import { createChannel, type EventChannel, Observed } from '../diagnostics/channel.ts';

/** The end of the receipt of a multipart request. */
interface UploadResult {
  /** Files and bytes that were stored, also of a request that failed. */
  readonly files: number;
  readonly bytes: number;
  /** The reason why the request was refused or aborted. */
  readonly error: Error | undefined;
}

/** Published when a multipart request arrives. Subscribers may observe how its receipt ends. */
export class ObservedUpload extends Observed<UploadResult> {
  readonly req: IncomingMessage;

  constructor(req: IncomingMessage) {
    super();
    this.req = req;
  }
}

const uploadChannel: EventChannel<ObservedUpload> = createChannel('uploads:request');

/** Publishes a request; undefined without subscribers. */
export function observeUpload(req: IncomingMessage): ObservedUpload | undefined {
  if (!uploadChannel.hasSubscribers) return undefined;
  const observed = new ObservedUpload(req);
  uploadChannel.publish(observed);
  return observed;
}
