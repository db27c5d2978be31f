import { channel } from 'node:diagnostics_channel';

/** A channel of `node:diagnostics_channel` with typed messages. */
export interface EventChannel<Message> {
  readonly hasSubscribers: boolean;
  publish(message: Message): void;
}

/** Returns the channel `espalier:<name>`. Every copy of the package in a process has the same channels. */
export const createChannel = <Message>(name: string): EventChannel<Message> => channel(`espalier:${name}`);

/** Work that begins with one message. Subscribers are notified when it ends. */
export class Observed<Result> {
  /** The time at which the work began, by `performance.now()`. */
  readonly started: number = performance.now();
  readonly #listeners: ((result: Result) => void)[] = [];

  /** Calls a function with the result of the work, in the order of the calls. */
  onEnd(listener: (result: Result) => void): void {
    this.#listeners.push(listener);
  }

  /** Notifies the subscribers. An error of one of them is thrown later, as by `node:diagnostics_channel`. */
  end(result: Result): void {
    for (const listener of this.#listeners.splice(0)) notify(() => listener(result));
  }
}

/** Calls a function of a subscriber, whose errors must not change the work that it observes. */
export function notify(call: () => void): void {
  try {
    call();
  } catch (error) {
    throwLater(error);
  }
}

/** Throws the error of a subscriber when the current work has ended. */
export function throwLater(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}
