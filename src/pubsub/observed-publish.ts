import { createChannel, type EventChannel, Observed } from '../diagnostics/channel.ts';

/** The end of a publish: without an error the transport has the event. */
interface PublishResult {
  readonly error: unknown;
}

/** Published when an event is published. Subscribers may observe how it ends. */
export class ObservedPublish extends Observed<PublishResult> {
  readonly topic: string;
  readonly payload: unknown;

  constructor(topic: string, payload: unknown) {
    super();
    this.topic = topic;
    this.payload = payload;
  }
}

/** Published when an event has arrived for the streams of a topic. */
export interface DeliveryEvent {
  readonly topic: string;
  readonly streams: number;
}

export const publishes: EventChannel<ObservedPublish> = createChannel('pubsub:publish');
export const deliveries: EventChannel<DeliveryEvent> = createChannel('pubsub:event');

/** Publishes the start of `publish`, and observes its end. */
export function observePublish(topic: string, payload: unknown, publish: () => Promise<void>): Promise<void> {
  const observed = new ObservedPublish(topic, payload);
  publishes.publish(observed);
  const published = publish();
  published.then(
    () => observed.end({ error: undefined }),
    (error: unknown) => observed.end({ error }),
  );
  return published;
}
