const END_OF_HEAD = Buffer.from('\r\n\r\n');
const EMPTY = Buffer.alloc(0);

/** Finds the end of each response on a connection: by Content-Length, by chunks, or after the head without a body. */
export class ResponseReader {
  #onResponse;
  #onBody;
  #held = EMPTY;
  #headOnly = false;
  #head;
  #left = 0;
  #step = 'head';

  /** Calls `onResponse(status, headers)` at the end of each response, and `onBody(part)` for its bytes. */
  constructor(onResponse, onBody) {
    this.#onResponse = onResponse;
    this.#onBody = onBody;
  }

  begin(headOnly) {
    this.#headOnly = headOnly;
  }

  read(chunk) {
    let data = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = EMPTY;
    while (data.length > 0) {
      const used = this.#advance(data);
      if (used === 0) {
        this.#held = data;
        return;
      }
      data = data.subarray(used);
    }
  }

  /** Consumes a piece; 0 when more bytes are needed. */
  #advance(data) {
    if (this.#step === 'head') return this.#readHead(data);
    if (this.#step === 'body') return this.#readBody(data);
    return this.#readChunkLine(data);
  }

  #readHead(data) {
    const end = data.indexOf(END_OF_HEAD);
    if (end < 0) return 0;
    const text = data.latin1Slice(0, end);
    const status = Number(text.slice(9, 12));
    if (status < 200) return end + 4;
    this.#head = { status, text };
    const length = /\r\ncontent-length: *(\d+)/i.exec(text);
    this.#left = length === null ? 0 : Number(length[1]);
    if (this.#headOnly || status === 204 || status === 304) this.#finish();
    else if (/\r\ntransfer-encoding: *chunked/i.test(text)) this.#step = 'chunk';
    else if (this.#left === 0) this.#finish();
    else this.#step = 'body';
    return end + 4;
  }

  #readBody(data) {
    const used = Math.min(data.length, this.#left);
    this.#onBody?.(data.subarray(0, used));
    this.#left -= used;
    if (this.#left === 0) this.#finish();
    return used;
  }

  // `#left` counts what remains of a chunk and of the line end after it.
  #readChunkLine(data) {
    if (this.#left > 0) {
      const used = Math.min(data.length, this.#left);
      const body = Math.min(used, this.#left - 2);
      if (body > 0) this.#onBody?.(data.subarray(0, body));
      this.#left -= used;
      return used;
    }
    const end = data.indexOf('\r\n');
    if (end < 0) return 0;
    const size = Number.parseInt(data.latin1Slice(0, end), 16);
    if (size > 0) {
      this.#left = size + 2;
      return end + 2;
    }
    if (data.length < end + 4) return 0; // no trailers are expected
    this.#finish();
    return end + 4;
  }

  #finish() {
    this.#step = 'head';
    const { status, text } = this.#head;
    this.#onResponse(status, this.#onBody === undefined ? undefined : headersOf(text));
  }
}

function headersOf(text) {
  const headers = {};
  for (const line of text.split('\r\n').slice(1)) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  return headers;
}
