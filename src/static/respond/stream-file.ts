import { fstat, read } from 'node:fs';
import { ServerResponse } from 'node:http';
import { sameContent } from '../file/file-version.ts';
import type { OpenFile } from '../file/open-version.ts';
import type { BufferPool } from './buffer-pool.ts';
import type { Section } from './byteranges.ts';
import { isAborted } from './headers.ts';
import type { StreamPlan } from './send-body.ts';

/** The body of a streamed response. */
export type StreamedBody = Pick<StreamPlan, 'sections' | 'tail'>;

/**
 * Reads a file and writes it to a response, one buffer at a time, so that a slow client costs one buffer. Closes the file in
 * every case. Before the last bytes are sent, another `fstat` confirms the version: if the file has changed, the connection
 * is destroyed, so that the client does not take a mixture of two versions for a complete response.
 */
export function streamFile(
  file: OpenFile,
  body: StreamedBody,
  res: ServerResponse,
  buffers: BufferPool,
): void {
  new FileStream(file, body, res, buffers).start();
}

class FileStream {
  readonly #file: OpenFile;
  readonly #body: StreamedBody;
  readonly #res: ServerResponse;
  readonly #buffers: BufferPool;
  readonly #buffer: Buffer;
  readonly #canReuseBuffer: boolean;
  #sectionIndex = 0;
  #position: number;
  /** Whether a read or stat of the descriptor is running, during which it must stay open. */
  #isFileInUse = false;
  #isStopped = false;

  constructor(file: OpenFile, body: StreamedBody, res: ServerResponse, buffers: BufferPool) {
    this.#file = file;
    this.#body = body;
    this.#res = res;
    this.#buffers = buffers;
    this.#buffer = buffers.acquire();
    this.#position = body.sections[0]?.start ?? 0;
    // Middleware that has replaced `write` or `end` (a body logger, compression) may keep the bytes that are written.
    const { write, end } = ServerResponse.prototype;
    this.#canReuseBuffer = res.write === write && res.end === end;
  }

  start(): void {
    this.#res.once('close', this.#stop);
    if (isAborted(this.#res)) this.#stop();
    else this.#startSection(this.#body.sections[0] as Section);
  }

  readonly #stop = (): void => {
    if (this.#isStopped) return;
    this.#isStopped = true;
    if (!this.#isFileInUse) this.#release();
  };

  #release(): void {
    this.#buffers.release(this.#buffer);
    this.#file.close();
  }

  #fail(): void {
    this.#res.destroy();
    this.#stop();
  }

  #startSection(section: Section): void {
    this.#position = section.start;
    if (section.before === undefined) this.#readOn();
    else this.#res.write(section.before, this.#onWritten);
  }

  readonly #onWritten = (error: Error | null | undefined): void => {
    if (error) this.#stop();
    else if (!this.#isStopped) this.#readOn();
  };

  #readOn(): void {
    const section = this.#body.sections[this.#sectionIndex] as Section;
    if (this.#position <= section.end) {
      this.#readChunk(section);
      return;
    }
    this.#sectionIndex++;
    const nextSection = this.#body.sections[this.#sectionIndex];
    if (nextSection !== undefined) this.#startSection(nextSection);
  }

  #readChunk(section: Section): void {
    const target = this.#canReuseBuffer ? this.#buffer : Buffer.allocUnsafeSlow(this.#buffer.length);
    const length = Math.min(target.length, section.end - this.#position + 1);
    this.#isFileInUse = true;
    read(this.#file.fd, target, 0, length, this.#position, (error, bytesRead) => {
      this.#isFileInUse = false;
      if (this.#isStopped) return this.#release();
      // The file ends before the promised length: it was truncated.
      if (error !== null || bytesRead === 0) return this.#fail();
      this.#position += bytesRead;
      const bytes = bytesRead === target.length ? target : target.subarray(0, bytesRead);
      const isLast = this.#position > section.end && this.#sectionIndex === this.#body.sections.length - 1;
      if (isLast) this.#confirmVersion(bytes);
      else this.#res.write(bytes, this.#onWritten);
    });
  }

  #confirmVersion(lastBytes: Buffer): void {
    this.#isFileInUse = true;
    fstat(this.#file.fd, { bigint: true }, (error, stats) => {
      this.#isFileInUse = false;
      if (this.#isStopped) return this.#release();
      if (error !== null || !sameContent(this.#file.version, stats)) return this.#fail();
      const { tail } = this.#body;
      if (tail === undefined) return void this.#res.end(lastBytes, this.#stop);
      this.#res.write(lastBytes);
      this.#res.end(tail, this.#stop);
    });
  }
}
