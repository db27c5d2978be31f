import { reserve, type Sink } from './writer.ts';

/** ASCII text known beforehand, to be written four bytes at a time. */
export class Fixed {
  readonly length: number;
  readonly words: readonly number[];

  constructor(text: string) {
    const bytes = Buffer.from(text);
    const padded = Buffer.concat([bytes, Buffer.alloc(3)]);
    this.length = bytes.length;
    this.words = Array.from({ length: Math.ceil(bytes.length / 4) }, (_, index) =>
      padded.readInt32LE(index * 4),
    );
  }
}

/** Writes fixed text. Up to three bytes behind it are written too, which the next text covers. */
export function writeFixed(sink: Sink, { words, length }: Fixed): void {
  reserve(sink, length + 3);
  const { view, pos } = sink;
  for (let i = 0, at = pos; i < words.length; i++, at += 4) view.setInt32(at, words[i] as number, true);
  sink.pos = pos + length;
}

export const NULL: Fixed = new Fixed('null');
export const TRUE: Fixed = new Fixed('true');
export const FALSE: Fixed = new Fixed('false');
