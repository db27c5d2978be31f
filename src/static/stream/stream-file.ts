import type { ServerResponse } from 'node:http';
import type { ByteRange } from '../../http/conditions/ranges.ts';
import { toError } from '../../http/reply/http-error.ts';
import { destroyIncomplete, isHttp2 } from '../../http/reply/response-state.ts';
import { ResponseWriter } from '../../http/reply/response-writer.ts';
import type { CircuitBreaker } from '../cache/circuit-breaker.ts';
import { isStaleError } from '../disk/file-errors.ts';
import { type OpenFileVersion, sameContent } from '../disk/file-version.ts';
import type { OpenFile } from '../disk/open-version.ts';
import type { BufferPool } from './buffer-pool.ts';
import type { ContentVerifier } from './content-verifier.ts';
import { FileReader } from './file-reader.ts';
import { isAborted } from './is-aborted.ts';
import { turnBudget } from './turn-budget.ts';

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
  readonly breaker: CircuitBreaker;
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
  readonly #writer: ResponseWriter;
  readonly #reader: FileReader;
  #sectionIndex = 0;
  #position: number;
  #isStopped = false;
  /** Middleware that collects the body sends the headers later. */
  #hasWritten = false;

  constructor(file: OpenFile, body: StreamedBody, res: ServerResponse, options: StreamOptions) {
    this.#file = file;
    this.#body = body;
    this.#res = res;
    this.#options = options;
    this.#position = body.sections[0]?.start ?? 0;
    this.#writer = new ResponseWriter(res, (error) => this.#onWritten(error));
    const { canReuseChunks } = this.#writer;
    const isWanted = this.#isWanted;
    this.#reader = new FileReader(file, { ...options, canReuseChunks, isHttp2: isHttp2(res), isWanted });
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
    if (!this.#reader.isBusy) this.#release();
  };

  #release(): void {
    this.#reader.releaseMemory();
    this.#file.close();
  }

  /** A stale handle means that the file was replaced on the server of a network file system. */
  #fail(cause: Error | undefined): void {
    const error = isStaleError(cause) ? undefined : cause;
    if (this.#hasWritten || this.#res.headersSent) {
      destroyIncomplete(this.#res, error);
      this.#stop();
      return;
    }
    this.#res.off('close', this.#stop);
    this.#stop();
    this.#options.onNothingSent(error);
  }

  #startSection({ start, before }: Section): void {
    this.#position = start;
    if (before === undefined || this.#sectionIndex === 0) this.#readNext();
    else this.#write(() => this.#writer.write(before));
  }

  #onWritten(error: Error | null | undefined): void {
    if (error) this.#stop();
    else this.#readNext();
  }

  #readNext(): void {
    if (!this.#reader.mayReadOnLoop()) this.#readOn();
    else {
      // Another transfer may use this memory meanwhile, while it is in the CPU's cache.
      this.#reader.releaseMemory();
      turnBudget.run(this.#readOn);
    }
  }

  readonly #readOn = (): void => {
    if (this.#isStopped) return;
    const section = this.#body.sections[this.#sectionIndex] as Section;
    if (this.#position <= section.end) {
      this.#readChunk(section);
      return;
    }
    this.#sectionIndex++;
    const nextSection = this.#body.sections[this.#sectionIndex];
    if (nextSection !== undefined) this.#startSection(nextSection);
  };

  #readChunk(section: Section): void {
    this.#reader.read(this.#position, section.end - this.#position + 1, (error, bytes) => {
      if (this.#isStopped) this.#release();
      else if (error !== null) this.#fail(error);
      // The file was truncated and ends before the promised length.
      else if (bytes.length === 0) this.#fail(undefined);
      else this.#onRead(section, bytes);
    });
  }

  #onRead(section: Section, bytes: Buffer): void {
    this.#position += bytes.length;
    const isLast = this.#position > section.end && this.#sectionIndex === this.#body.sections.length - 1;
    if (isLast) {
      this.#confirmVersion(bytes);
      return;
    }
    this.#options.verifier.record(bytes);
    this.#write(() => this.#writer.write(bytes));
  }

  /** The bytes before the first section are written together with its first chunk. Middleware may have replaced `write`. */
  #write(write: () => void): void {
    const isFirst = !this.#hasWritten;
    const before = isFirst ? this.#body.sections[0]?.before : undefined;
    this.#hasWritten = true;
    try {
      if (before !== undefined) this.#res.write(before);
      write();
    } catch (error) {
      this.#hasWritten = !isFirst;
      this.#fail(toError(error));
    }
  }

  #confirmVersion(lastBytes: Buffer): void {
    this.#reader.readVersion((error, current) => {
      if (this.#isStopped) this.#release();
      else if (current === undefined) this.#fail(error ?? undefined);
      else if (sameContent(this.#file.version, current)) this.#finish(lastBytes);
      else this.#confirmContent(lastBytes, current);
    });
  }

  /** Completes the response although the version has changed, if the promised bytes are unchanged. */
  #confirmContent(lastBytes: Buffer, current: OpenFileVersion): void {
    const { verifier } = this.#options;
    verifier.record(lastBytes);
    const settle = (proceed: () => void): void => {
      if (this.#isStopped) this.#release();
      else proceed();
    };
    const verify = (): Promise<boolean> =>
      verifier.verify(this.#file.fd, current, this.#body.sections, this.#isWanted);
    this.#reader.hold(verify).then(
      (isSame) => settle(() => (isSame ? this.#finish(lastBytes) : this.#fail(undefined))),
      (error: Error) => settle(() => this.#fail(error)),
    );
  }

  #finish(lastBytes: Buffer): void {
    const { tail } = this.#body;
    this.#write(() => {
      if (tail !== undefined) this.#res.write(lastBytes);
      this.#res.end(tail ?? lastBytes, this.#stop);
    });
  }
}
