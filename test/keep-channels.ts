// Node 20 drops a channel from its registry when an older channel of the same name is collected
// (nodejs/node#59910). Each test file loads the package again, so the channels of all files of a process are kept.
import diagnostics from 'node:diagnostics_channel';

const graphql =
  'request parse validate operation connection cost execute subscribe response stream-start stream-end';
const names = [
  ...['pubsub:publish', 'pubsub:event', 'static:request', 'uploads:request'],
  ...graphql.split(' ').map((name) => `graphql:${name}`),
];

interface Shared {
  channels: diagnostics.Channel[];
  /** What the test files so far have subscribed. */
  listeners: [diagnostics.Channel, diagnostics.ChannelListener][];
}

// Built-in modules are the only objects that the test files of a process share.
const holder = diagnostics as typeof diagnostics & { shared?: Shared };
holder.shared ??= { channels: names.map((name) => keep(`espalier:${name}`)), listeners: [] };

// A page of `inspect` listens as long as its process runs: the next file must not find it.
for (const [channel, listener] of holder.shared.listeners.splice(0)) channel.unsubscribe(listener);

/** Returns a channel that notes its listeners. */
function keep(name: string): diagnostics.Channel {
  const channel = diagnostics.channel(name);
  channel.subscribe = (listener) => {
    holder.shared?.listeners.push([channel, listener]);
    // A channel has another prototype while it has listeners.
    Object.getPrototypeOf(channel).subscribe.call(channel, listener);
  };
  return channel;
}
