import type { DocumentNode, GraphQLError, GraphQLFormattedError, GraphQLSchema } from 'graphql';
import { parse } from 'graphql';
import type { ExecutionInputs, GraphQLParams } from '../execution/types.ts';
import type { Connection } from './connection.ts';
import { toldErrors } from './failure.ts';
import type { Envelope } from './frames.ts';
import { closeCodeOf } from './source.ts';

/**
 * What the engine is told every operation is: a subscription, so that it asks us to run it, keeps its life and leaves the
 * results to us. The text is never executed.
 */
const ENVELOPE: DocumentNode = parse('subscription { events }');
const DONE = { done: true, value: undefined } as const;
const FAILED = new Error('The operation failed');

/**
 * One operation in the three parts it plays: the arguments that the engine's `onSubscribe` gets, the stream that its
 * `subscribe` gets (which never yields, and ends or fails once), and the way of our results to the client.
 */
export class Operation implements Envelope, ExecutionInputs, AsyncIterableIterator<never> {
  readonly connection: Connection;
  /** The id the engine knows it by; the client's may be used again while this operation still unwinds. */
  readonly id: string;
  /** The client's id, as JSON. */
  readonly key: string;
  readonly prefix: string;
  readonly params: GraphQLParams;
  /** False from the moment that nothing more may be sent for it. */
  live = true;
  /** The errors of its end, as clients see them. */
  failure: readonly GraphQLFormattedError[] | undefined;
  /** Gives back what it reads from. */
  release: (() => void) | undefined;
  droppable = false;
  /** Its source waits when the reader is slow, instead of the reader being cut off. */
  patient = false;
  #ended: 'done' | 'failed' | undefined;
  #settle: ((ended: 'done' | 'failed') => void) | undefined;
  #controller: AbortController | undefined;

  constructor(connection: Connection, id: string, key: string, params: GraphQLParams) {
    this.connection = connection;
    this.id = id;
    this.key = key;
    this.params = params;
    const prefix = `{"id":${key},"type":"${connection.dialect.resultType}","payload":`;
    this.prefix = Buffer.from(prefix).toString('latin1');
  }

  // For the engine: present, so that it asks for no others.
  get document(): DocumentNode {
    return ENVELOPE;
  }
  get schema(): GraphQLSchema {
    return this.connection.schema as GraphQLSchema;
  }

  // For the execution.
  get rootValue(): unknown {
    return this.connection.rootValue();
  }
  get contextValue(): unknown {
    return this.connection.context;
  }
  get variableValues(): Record<string, unknown> | undefined {
    return this.params.variables;
  }
  /** Made when an engine or a source asks for it. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }

  /** A result on its way to the client, which waits for it or (`soon` false) reads a stream. */
  emit(body: Buffer | string, soon: boolean): void {
    if (this.live) this.connection.result(this, typeof body === 'string' ? Buffer.from(body) : body, soon);
  }

  end(): void {
    this.#finish('done');
  }

  fail(errors: readonly GraphQLError[]): void {
    const code = this.live ? closeCodeOf(errors) : undefined;
    if (code !== undefined) {
      this.connection.shut(code, errors[0]?.message ?? '');
      return;
    }
    this.failure = toldErrors(this.connection.hub.core, errors);
    this.#finish('failed');
  }

  abort(): void {
    this.#controller?.abort();
  }

  /** The client, or its socket, wants no more of it. */
  stop(): void {
    if (!this.live) return;
    // A source's reader aborts when it gives the source back.
    if (this.release === undefined) this.abort();
    this.retire();
  }

  /** Gives the client's id free and the source back. */
  retire(): void {
    if (!this.live) return;
    this.live = false;
    this.connection.operations.forget(this);
    this.release?.();
    this.release = undefined;
  }

  #finish(ended: 'done' | 'failed'): void {
    if (this.#ended !== undefined) return;
    this.#ended = ended;
    this.#settle?.(ended);
  }

  next(): Promise<IteratorResult<never, undefined>> {
    if (this.#ended === 'failed') return Promise.reject(FAILED);
    if (this.#ended === 'done') return Promise.resolve(DONE);
    return new Promise((resolve, reject) => {
      this.#settle = (ended) => (ended === 'done' ? resolve(DONE) : reject(FAILED));
    });
  }

  /** The engine lets go of it: never waits for a source, which may be stuck. */
  return(): Promise<IteratorResult<never, undefined>> {
    this.stop();
    this.#finish('done');
    return Promise.resolve(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
