import type { Readable } from 'node:stream';

/** A text part of a form. */
export interface TextPart {
  readonly kind: 'text';
  readonly name: string;
  readonly value: string;
}

/** A file part with the fields of its header. Its stream must be read, otherwise the parser stops. */
export interface FilePart {
  readonly kind: 'file';
  readonly name: string;
  readonly filename: string;
  readonly mimetype: string;
  readonly encoding: string;
  readonly stream: Readable;
}

/** A file part without a filename. The parser discards its content. */
export interface UnnamedFilePart {
  readonly kind: 'unnamed-file';
  readonly name: string;
}

export type Part = TextPart | FilePart | UnnamedFilePart;

/** The parts of one multipart body, in order. The parser pushes parts, `next` removes them. */
export class Form {
  /** Stops the parser and detaches it from the request. */
  stop: () => void = () => {};

  /** The parser's limits of text and file parts bound the queue. */
  readonly #queue: (Part | Error)[] = [];
  #ended = false;
  #failure: Error | undefined;
  #wake: () => void = () => {};

  /** Adds a part, or the error that follows the parts before it. */
  push(item: Part | Error): void {
    if (this.#failure !== undefined) return;
    this.#queue.push(item);
    this.#wake();
  }

  /** Marks the form as complete. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** Ends the form with an error and drops queued parts. Keeps and returns the first error. */
  fail(error: Error): Error {
    if (this.#failure === undefined) {
      this.#failure = error;
      this.#queue.length = 0;
      this.stop();
      this.#wake();
    }
    return this.#failure;
  }

  /** Returns the next part, or undefined after the last. Rejects with the error that ended the form. */
  async next(): Promise<Part | undefined> {
    for (;;) {
      const item = this.#queue.shift();
      if (item instanceof Error) throw this.fail(item);
      if (item !== undefined) return item;
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
