import { subscribe } from 'node:diagnostics_channel';
import type { InspectFigures } from '../../types/inspect.ts';
import type { ResponseEvent } from '../core/diagnostics.ts';
import { readGauges } from '../diagnostics/gauges.ts';
import { readProcessStats } from '../diagnostics/process-stats.ts';
import type { ObservedOperation } from '../execution/observed.ts';
import type { DeliveryEvent, ObservedPublish } from '../pubsub/observed-publish.ts';
import type { ObservedRequest } from '../static/handler.ts';
import type { ObservedUpload } from '../uploads/receive.ts';
import { ErrorCounters } from './error-figures.ts';
import { OperationCounters } from './operation-figures.ts';

type Counts = Record<string, number>;

const increment = (counts: Counts, name: string | number): void => {
  counts[name] = (counts[name] ?? 0) + 1;
};

/** Collects figures from the diagnostics channels, from its creation on. */
export class Recorder {
  readonly #errors = new ErrorCounters();
  readonly #operations: OperationCounters;
  /** The requests that had operations. */
  readonly #observed = new WeakSet<object>();
  readonly #documents = { lookups: 0, misses: 0 };
  readonly #files = { hits: 0, misses: 0 };
  readonly #statuses = { graphql: {} as Counts, files: {} as Counts };
  readonly #uploaded = { requests: 0, files: 0, bytes: 0, failed: 0 };
  readonly #pubsub = { published: 0, failed: 0, delivered: 0 };

  constructor(maxOperations: number) {
    this.#operations = new OperationCounters(maxOperations, (errors, operation) =>
      this.#errors.add(errors, operation),
    );
    this.#observeGraphQL();
    this.#observeOthers();
    // Starts the measurement of the event loop.
    readProcessStats();
  }

  read(): InspectFigures {
    const { lookups, misses } = this.#documents;
    const responses = readGauges('responses');
    return {
      time: new Date().toISOString(),
      process: { pid: process.pid, node: process.version, uptime: process.uptime() },
      ...this.#operations.read(),
      errors: this.#errors.read(),
      lookups: {
        documents: { hits: Math.max(0, lookups - misses), misses },
        responses: { hits: responses['hits'] ?? 0, misses: responses['misses'] ?? 0 },
        files: this.#files,
      },
      statuses: this.#statuses,
      uploaded: this.#uploaded,
      pubsub: this.#pubsub,
      ...readProcessStats(),
    };
  }

  #observeGraphQL(): void {
    on<ObservedOperation>('graphql:operation', (operation) => {
      this.#documents.lookups++;
      if (operation.request !== undefined) this.#observed.add(operation.request);
      this.#operations.observe(operation);
    });
    on('graphql:parse', () => {
      this.#documents.misses++;
    });
    on<ResponseEvent>('graphql:response', ({ req, status, errors }) => {
      increment(this.#statuses.graphql, status);
      // The errors of operations are counted with the operations.
      if (errors.length > 0 && !this.#observed.has(req)) this.#errors.add(errors, undefined);
    });
  }

  #observeOthers(): void {
    on<ObservedRequest>('static:request', (request) => {
      request.onEnd(({ status }) => {
        if (status === undefined) return;
        increment(this.#statuses.files, status);
        this.#files[request.isCached ? 'hits' : 'misses']++;
      });
    });
    on<ObservedUpload>('uploads:request', (upload) => {
      upload.onEnd(({ files, bytes, error }) => {
        this.#uploaded.requests++;
        this.#uploaded.files += files;
        this.#uploaded.bytes += bytes;
        if (error !== undefined) this.#uploaded.failed++;
      });
    });
    on<ObservedPublish>('pubsub:publish', (publish) => {
      publish.onEnd(({ error }) => {
        if (error === undefined) this.#pubsub.published++;
        else this.#pubsub.failed++;
      });
    });
    on<DeliveryEvent>('pubsub:event', ({ streams }) => {
      this.#pubsub.delivered += streams;
    });
  }
}

const on = <Message>(name: string, subscriber: (message: Message) => void): void =>
  subscribe(`espalier:${name}`, (message) => subscriber(message as Message));
