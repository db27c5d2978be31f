import { fstat, fstatSync, read } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { ByteRange } from '../../http/conditions/ranges.ts';
import { isHttp2, ResponseWriter } from '../../http/reply/response-writer.ts';
import { isStaleError } from '../disk/file-errors.ts';
import { type OpenFileVersion, sameContent } from '../disk/file-version.ts';
import type { OpenFile } from '../disk/open-version.ts';
import { inThread, runInThread } from '../disk/thread-share.ts';
import type { BufferPool } from './buffer-pool.ts';
import type { ContentVerifier } from './content-verifier.ts';
import { isAborted } from './is-aborted.ts';

/** A range of the file, and the bytes that precede it in the response. */
export interface Section extends ByteRange {
  readonly before: Buffer | undefined;
}

/** The body of a streamed response. */
export interface StreamedBody {
  readonly sections: readonly Section[];
  /** The last bytes of a multipart body. */
  readonly tail: Buffer | undefined;
}

/** Arguments of a stream in addition to the file, the body and the response. */
interface StreamOptions {
  readonly buffers: BufferPool;
  readonly verifier: ContentVerifier;
  /** Called instead of sending anything, when reading failed (`error`) or the file has changed (undefined). */
  readonly onNothingSent: (error: Error | undefined) => void;
}

/**
 * Reads a file and writes it to a response, one buffer at a time, so that a slow client costs one buffer. Closes the file in
 * every case. Before the last bytes are sent, another `fstat` confirms the version. If the bytes have changed, the connection
 * is destroyed, so that the client does not accept a mixture of two versions as a complete response.
 */
export class FileStream {
  readonly #file: OpenFile;
  readonly #body: StreamedBody;
  readonly #res: ServerResponse;
  readonly #options: StreamOptions;
  readonly #buffer: Buffer;
  readonly #writer: ResponseWriter;
  #sectionIndex = 0;
  #position: number;
  /** Whether an operation on the descriptor is running, during which it must stay open. */
  #isFileInUse = false;
  #isStopped = false;
  /** Middleware that collects the body sends the headers later. */
  #hasWritten = false;

  constructor(file: OpenFile, body: StreamedBody, res: ServerResponse, options: StreamOptions) {
    this.#file = file;
    this.#body = body;
    this.#res = res;
    this.#options = options;
    this.#buffer = isHttp2(res) ? options.buffers.acquireSmall() : options.buffers.acquire();
    this.#position = body.sections[0]?.start ?? 0;
    this.#writer = new ResponseWriter(res, (error) => this.#onWritten(error));
  }

  start(): void {
    this.#res.once('close', this.#stop);
    if (isAborted(this.#res)) this.#stop();
    else this.#startSection(this.#body.sections[0] as Section);
  }

  readonly #isWanted = (): boolean => !this.#isStopped;

  readonly #stop = (): void => {
    if (this.#isStopped) return;
    this.#isStopped = true;
    if (!this.#isFileInUse) this.#release();
  };

  #release(): void {
    this.#options.buffers.release(this.#buffer);
    this.#file.close();
  }

  #fail(error: Error | undefined): void {
    if (this.#hasWritten || this.#res.headersSent) {
      this.#res.destroy();
      this.#stop();
      return;
    }
    this.#res.off('close', this.#stop);
    this.#stop();
    this.#options.onNothingSent(error);
  }

  #startSection(section: Section): void {
    this.#position = section.start;
    if (section.before === undefined || this.#sectionIndex === 0) this.#readOn();
    else this.#writer.write(section.before);
  }

  #onWritten(error: Error | null | undefined): void {
    if (error) this.#stop();
    else if (!this.#isStopped) this.#readOn();
  }

  #readOn(): void {
    const section = this.#body.sections[this.#sectionIndex] as Section;
    if (this.#position <= section.end) {
      runInThread(this.#file.threads, this.#isWanted, () => this.#readChunk(section));
      return;
    }
    this.#sectionIndex++;
    const nextSection = this.#body.sections[this.#sectionIndex];
    if (nextSection !== undefined) this.#startSection(nextSection);
  }

  #readChunk(section: Section): void {
    const target = this.#writer.canReuseChunks ? this.#buffer : Buffer.allocUnsafeSlow(this.#buffer.length);
    const length = Math.min(target.length, section.end - this.#position + 1);
    this.#isFileInUse = true;
    read(this.#file.fd, target, 0, length, this.#position, (error, bytesRead) => {
      this.#isFileInUse = false;
      this.#file.threads?.release();
      if (this.#isStopped) return this.#release();
      if (error !== null) return this.#fail(isStaleError(error) ? undefined : error);
      // The file ends before the promised length: it was truncated.
      if (bytesRead === 0) return this.#fail(undefined);
      this.#position += bytesRead;
      const bytes = bytesRead === target.length ? target : target.subarray(0, bytesRead);
      const isLast = this.#position > section.end && this.#sectionIndex === this.#body.sections.length - 1;
      if (isLast) this.#confirmVersion(bytes);
      else {
        this.#options.verifier.record(bytes);
        this.#writeFirstHead();
        this.#writer.write(bytes);
      }
    });
  }

  /** The bytes before the first section are written together with its first chunk, not before it has been read. */
  #writeFirstHead(): void {
    if (this.#hasWritten) return;
    this.#hasWritten = true;
    const before = this.#body.sections[0]?.before;
    if (before !== undefined) this.#res.write(before);
  }

  #confirmVersion(lastBytes: Buffer): void {
    if (this.#file.isLocal) {
      this.#compareVersion(lastBytes, fstatSync(this.#file.fd, { bigint: true }));
      return;
    }
    runInThread(this.#file.threads, this.#isWanted, () => {
      this.#isFileInUse = true;
      fstat(this.#file.fd, { bigint: true }, (error, stats) => {
        this.#isFileInUse = false;
        this.#file.threads?.release();
        if (this.#isStopped) this.#release();
        else if (error !== null) this.#fail(error);
        else this.#compareVersion(lastBytes, stats);
      });
    });
  }

  #compareVersion(lastBytes: Buffer, current: OpenFileVersion): void {
    if (sameContent(this.#file.version, current)) this.#finish(lastBytes);
    else this.#confirmContent(lastBytes, current);
  }

  /** Completes the response although the version has changed, if the promised bytes are unchanged. */
  #confirmContent(lastBytes: Buffer, current: OpenFileVersion): void {
    const { verifier } = this.#options;
    verifier.record(lastBytes);
    this.#isFileInUse = true;
    const settle = (isSame: boolean, error: Error | undefined): void => {
      this.#isFileInUse = false;
      if (this.#isStopped) this.#release();
      else if (isSame) this.#finish(lastBytes);
      else this.#fail(error);
    };
    const { fd, threads } = this.#file;
    inThread(threads, () => verifier.verify(fd, current, this.#body.sections, this.#isWanted)).then(
      (isSame) => settle(isSame, undefined),
      (error: Error) => settle(false, error),
    );
  }

  #finish(lastBytes: Buffer): void {
    const { tail } = this.#body;
    this.#writeFirstHead();
    if (tail === undefined) {
      this.#res.end(lastBytes, this.#stop);
      return;
    }
    this.#res.write(lastBytes);
    this.#res.end(tail, this.#stop);
  }
}
