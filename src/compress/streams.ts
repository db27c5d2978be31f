import type { Transform } from 'node:stream';
import zlib, { constants } from 'node:zlib';
import type { Coding } from '../http/codings.ts';
import type { Exchange } from '../http/exchange.ts';
import type { StreamEncoding } from '../http/stream.ts';
import type { Compression } from './results.ts';

/** A compressor of Node, which `flush` lets write all that it has got. */
interface Compressor extends Transform {
  flush(kind?: number): void;
}

// Node has zstd since 22.15.
const { createZstdCompress }: { readonly createZstdCompress?: (options: object) => Compressor } =
  Object(zlib);
const {
  ZSTD_c_compressionLevel: ZSTD_LEVEL = 100,
  ZSTD_c_windowLog: ZSTD_WINDOW = 101,
}: Record<string, number> = Object(constants);

/** Windows of 64 KiB at most: events resemble those shortly before, and each open stream has a compressor. */
const COMPRESSORS: Readonly<Record<Coding, { readonly bytes: number; create(): Compressor }>> = {
  gzip: {
    bytes: 320 * 1024,
    create: () => zlib.createGzip({ level: 5, windowBits: 14, memLevel: 7 }),
  },
  br: {
    bytes: 700 * 1024,
    create: () =>
      zlib.createBrotliCompress({
        params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: 16 },
      }),
  },
  zstd: {
    bytes: 700 * 1024,
    create() {
      if (createZstdCompress === undefined) throw new Error('This version of Node has no zstd');
      return createZstdCompress({ params: { [ZSTD_LEVEL]: 3, [ZSTD_WINDOW]: 16 } });
    },
  },
};

/** What is written after each event: gzip keeps its window, which the default of Node would discard. */
const FLUSH: Readonly<Record<Coding, number | undefined>> = {
  gzip: constants.Z_SYNC_FLUSH,
  br: undefined,
  zstd: undefined,
};

/** The compressors of the open streams of one handler. */
export class StreamCompression {
  readonly #compression: Compression;
  /** An estimate of their memory. */
  #bytes = 0;

  constructor(compression: Compression) {
    this.#compression = compression;
  }

  /** The coding of a stream; undefined if it is sent as it is: the client, BREACH, or the memory of all streams. */
  encodingFor(exchange: Exchange): StreamEncoding | undefined {
    const coding = this.#compression.preferred(exchange);
    if (coding === undefined || exchange.res.hasHeader('content-encoding')) return undefined;
    if (!this.#compression.isAllowed(exchange, false)) return undefined;
    const { bytes, create } = COMPRESSORS[coding];
    if (this.#bytes + bytes > this.#compression.settings.maxStreamBytes) return undefined;
    this.#bytes += bytes;
    const compressor = create();
    return {
      coding,
      compressor,
      flush: () => compressor.flush(FLUSH[coding]),
      release: () => {
        this.#bytes -= bytes;
        compressor.destroy();
      },
    };
  }
}
