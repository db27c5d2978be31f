import type { GraphQLSchema } from 'graphql';
import type { PreparedOperation } from '../execution/types.ts';
import type { Operation } from './operation.ts';
import type { Outbox } from './outbox.ts';
import { type Counters, follow } from './reader.ts';
import type { Sweep } from './sweep.ts';

/** Subscriptions that share one source, one execution and one serialisation per event. */
export interface Groups {
  /** Gives an operation its place in the group of its like, a new one if there is none. */
  join(operation: Operation, prepared: PreparedOperation, key: string | number): void;
  /** Gives back the sources that nobody has read for a while; true while some wait. */
  visit(now: number): boolean;
  /** Gives back all that nobody reads. */
  close(): void;
  readonly size: number;
}

interface GroupsHub {
  readonly counters: Counters;
  readonly outbox: Outbox;
  readonly sweep: Sweep;
  readonly settings: { readonly maxBufferedBytes: number };
}

interface Group {
  readonly members: Set<Operation>;
  release: () => void;
  emptySince: number;
}

/** How long a source is kept after its last reader has left: those who reconnect find it open. */
const LINGER = 1000;

export function createGroups(hub: GroupsHub): Groups {
  const schemas = new Map<GraphQLSchema, Map<string, Group>>();
  let size = 0;

  function open(
    prepared: PreparedOperation,
    first: Operation,
    name: string,
    groups: Map<string, Group>,
  ): Group {
    const members = new Set<Operation>();
    const group: Group = { members, release: () => undefined, emptySince: 0 };
    const controller = new AbortController();
    let burst = 0;
    // Out of the map before its members are told: who subscribes again gets a fresh source.
    const leave = (): void => {
      if (groups.get(name) !== group) return;
      groups.delete(name);
      size--;
    };
    groups.set(name, group);
    size++;
    const release = follow(prepared, {
      counters: hub.counters,
      inputs: {
        rootValue: first.rootValue,
        contextValue: first.contextValue,
        variableValues: first.variableValues,
        signal: controller.signal,
      },
      wanted: () => members.size > 0,
      result: ({ body }) => {
        const bytes = typeof body === 'string' ? Buffer.from(body) : body;
        burst += bytes.length;
        for (const member of members) member.emit(bytes, false);
      },
      // Never waits for a reader, but lets the event loop turn when much is queued: a reader that takes all it is sent
      // must not be cut off because nothing could leave meanwhile.
      room: () => {
        if (burst < hub.settings.maxBufferedBytes / 4 && !hub.outbox.congested()) return undefined;
        burst = 0;
        return hub.outbox.turn();
      },
      ended: () => {
        leave();
        for (const member of members) member.end();
      },
      failed: (errors) => {
        leave();
        for (const member of members) member.fail(errors);
      },
      abort: () => controller.abort(),
    });
    group.release = () => {
      leave();
      release();
    };
    return group;
  }

  function join(operation: Operation, prepared: PreparedOperation, key: string | number): void {
    let groups = schemas.get(prepared.schema);
    if (groups === undefined) {
      groups = new Map();
      schemas.set(prepared.schema, groups);
    }
    const name = nameOf(operation, key);
    const group = groups.get(name) ?? open(prepared, operation, name, groups);
    group.members.add(operation);
    operation.release = () => {
      group.members.delete(operation);
      if (group.members.size > 0) return;
      group.emptySince = hub.sweep.now();
      hub.sweep.wake();
    };
  }

  function each(visit: (group: Group) => void): void {
    for (const [schema, groups] of schemas) {
      for (const group of groups.values()) if (group.members.size === 0) visit(group);
      if (groups.size === 0) schemas.delete(schema);
    }
  }

  return {
    join,
    visit(now) {
      let waiting = false;
      each((group) => {
        if (now - group.emptySince >= LINGER) group.release();
        else waiting = true;
      });
      return waiting;
    },
    close: () => each((group) => group.release()),
    get size() {
      return size;
    },
  };
}

/** What makes subscriptions alike: JSON keeps the parts apart, so that no client can make one look like another. */
function nameOf({ params }: Operation, key: string | number): string {
  return JSON.stringify([key, params.operationName, params.variables, params.query], sortMembers);
}

function sortMembers(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
