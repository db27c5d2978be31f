import { read } from 'node:fs';

/**
 * Reads bytes of an open file into a buffer, and resolves to their number; 0 at the end. `promisify` is not used:
 * of `fs.read` it resolves to an object, but to the number if a tracer has replaced the function.
 */
export function readAsync(
  fd: number,
  buffer: Buffer,
  offset: number,
  length: number,
  position: number,
): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, offset, length, position, (error, bytesRead) => {
      if (error) reject(error);
      else resolve(bytesRead);
    });
  });
}
