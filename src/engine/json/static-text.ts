import { reserve, type Sink } from './sink.ts';

/** ASCII text that is known at compile time, stored as words of four bytes. */
export class StaticText {
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

/** Writes static text. It also writes up to three bytes of padding, which the next text overwrites. */
export function writeStatic(sink: Sink, { words, length }: StaticText): void {
  reserve(sink, length + 3);
  const { view, pos } = sink;
  for (let i = 0, at = pos; i < words.length; i++, at += 4) view.setInt32(at, words[i] as number, true);
  sink.pos = pos + length;
}

export const NULL: StaticText = new StaticText('null');
export const TRUE: StaticText = new StaticText('true');
export const FALSE: StaticText = new StaticText('false');
