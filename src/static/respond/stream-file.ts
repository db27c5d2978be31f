import { fstat, read } from 'node:fs';
import { ServerResponse } from 'node:http';
import { sameBytes } from '../file/file-version.ts';
import type { Source } from '../file/open-version.ts';
import type { Chunks } from './buffer-pool.ts';
import type { Section } from './byteranges.ts';
import { isGone } from './headers.ts';

/** What to send of it. */
export interface Payload {
  readonly sections: readonly Section[];
  readonly tail: Buffer | undefined;
}

/**
 * Reads a file and writes it to a response, one chunk in flight, so a slow reader costs one chunk. Closes the file,
 * whatever happens. Before the last bytes leave, the file is looked at once more: a body that is not wholly of the
 * version its headers name ends the connection, and so never looks complete.
 */
export function pump(source: Source, payload: Payload, res: ServerResponse, chunks: Chunks): void {
  const { fd } = source;
  const own = chunks.take();
  // Who wraps `write` or `end` (a body logger, a compressor) may keep what is written: it gets buffers of its own.
  const { write, end } = ServerResponse.prototype;
  const mayReuse = res.write === write && res.end === end;
  let index = 0;
  let position = payload.sections[0]?.start ?? 0;
  let reading = false;
  let over = false;

  function stop(): void {
    if (over) return;
    over = true;
    if (!reading) release();
  }

  function release(): void {
    chunks.give(own);
    source.close();
  }

  function fail(): void {
    res.destroy();
    stop();
  }

  function enter(section: Section): void {
    position = section.start;
    if (section.before === undefined) readOn();
    else res.write(section.before, proceed);
  }

  function proceed(error: Error | null | undefined): void {
    if (error) stop();
    else if (!over) readOn();
  }

  function readOn(): void {
    const section = payload.sections[index] as Section;
    if (position <= section.end) {
      readChunk(section);
      return;
    }
    index++;
    const following = payload.sections[index];
    if (following !== undefined) enter(following);
  }

  function readChunk(section: Section): void {
    const target = mayReuse ? own : Buffer.allocUnsafeSlow(own.length);
    const wanted = Math.min(target.length, section.end - position + 1);
    reading = true;
    read(fd, target, 0, wanted, position, (error, count) => {
      reading = false;
      if (over) return release();
      // Nothing more to read though more was promised: the file was truncated.
      if (error !== null || count === 0) return fail();
      position += count;
      const bytes = count === target.length ? target : target.subarray(0, count);
      const isLast = position > section.end && index === payload.sections.length - 1;
      if (isLast) confirm(bytes);
      else res.write(bytes, proceed);
    });
  }

  function confirm(bytes: Buffer): void {
    reading = true;
    fstat(fd, { bigint: true }, (error, now) => {
      reading = false;
      if (over) return release();
      if (error !== null || !sameBytes(source.identity, now)) return fail();
      if (payload.tail === undefined) return void res.end(bytes, stop);
      res.write(bytes);
      res.end(payload.tail, stop);
    });
  }

  res.once('close', stop);
  if (isGone(res)) stop();
  else enter(payload.sections[0] as Section);
}
