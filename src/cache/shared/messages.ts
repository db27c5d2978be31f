import { isCount, isListOf, isObject, isString } from '../../options/rules.ts';

/** The topic of renewals and invalidations. */
export const TOPIC = 'cache:invalidations';

/** The topic of the acknowledgements for one process. */
export const acknowledgementsTopic = (id: string): string => `cache:acknowledgements:${id}`;

/** Renews the lease of a process. */
interface Renewal {
  readonly type: 'renewal';
  readonly from: string;
  readonly number: number;
}

/** Invalidates tags in every process. */
export interface Invalidation {
  readonly type: 'invalidation';
  readonly from: string;
  readonly number: number;
  readonly tags: readonly string[];
}

/** Confirms to a process that another one has applied its invalidation. */
interface Acknowledgement {
  readonly from: string;
  readonly number: number;
}

const isTags = isListOf(isString);

/** Returns a message of the topic; undefined for a message of another program. */
export function parseMessage(value: unknown): Renewal | Invalidation | undefined {
  if (!isObject(value) || !isString(value['from']) || !isCount(value['number'])) return undefined;
  const { type, from, number, tags } = value;
  if (type === 'renewal') return { type, from, number };
  if (type !== 'invalidation' || !isTags(tags)) return undefined;
  return { type, from, number, tags: tags.map(String) };
}

/** Returns an acknowledgement; undefined for a message of another program. */
export function parseAcknowledgement(value: unknown): Acknowledgement | undefined {
  if (!isObject(value) || !isString(value['from']) || !isCount(value['number'])) return undefined;
  return { from: value['from'], number: value['number'] };
}
