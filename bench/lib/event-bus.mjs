// The schema, source and events of the topics that measure subscriptions.

export const QUERY = 'subscription { event { id name value } }';
export const TYPES = `
  type Event { id: Int! name: String! value: Float! }
  type Query { none: Int }
  type Subscription { event: Event! }
`;

/** A bus with hand-written iterators, so that the figures do not contain a pub/sub library. */
export function createBus() {
  const readers = new Set();
  return {
    subscribers: () => readers.size,
    publish(value) {
      for (const reader of readers) reader(value);
    },
    subscribe() {
      const queue = [];
      let take;
      const reader = (value) => {
        if (take === undefined) return queue.push(value);
        const resolve = take;
        take = undefined;
        resolve({ done: false, value });
      };
      readers.add(reader);
      return {
        next: () =>
          queue.length > 0
            ? Promise.resolve({ done: false, value: queue.shift() })
            : new Promise((resolve) => {
                take = resolve;
              }),
        return() {
          readers.delete(reader);
          take?.({ done: true });
          return Promise.resolve({ done: true });
        },
        [Symbol.asyncIterator]() {
          return this;
        },
      };
    },
  };
}

export const eventOf = (id) => ({ event: { id, name: 'an event for each user', value: id / 7 } });
