import type { GraphQLCore } from '../core/core.ts';
import type { OperationHook } from '../core/operation-hook.ts';
import { OperationCursors } from '../cursors/operation-cursors.ts';
import type { CursorSettings } from '../cursors/options.ts';
import type { PreparedOperation } from '../execution/types.ts';
import { consumeSource, type SourceCounters } from './consume-source.ts';
import type { LiveOperation } from './live-operation.ts';
import type { SubscriptionGroups } from './sharing/groups.ts';
import { identityOf, type ShareFunction, type ShareKey, shareKeyOf } from './sharing/share-key.ts';

/** The services that all live operations of one endpoint use. */
export interface OperationServices {
  readonly core: GraphQLCore;
  readonly groups: SubscriptionGroups;
  readonly counters: SourceCounters;
  readonly settings: OperationSettings;
  readonly onOperation: OperationHook | undefined;
}

/** The options of live operations. */
export interface OperationSettings {
  readonly operations: readonly string[];
  readonly drop: false | 'oldest';
  readonly share: ShareFunction | undefined;
}

/** Starts a subscription: opens a private source stream, or joins a group. */
export function subscribe(
  operation: LiveOperation,
  { core, groups, counters, settings }: OperationServices,
  prepared: PreparedOperation,
): void {
  operation.droppable = settings.drop === 'oldest';
  const key = shareKeyOf(settings.share, operation.contextValue, operation.params);
  if (core.cursors !== undefined && !openCursors(operation, prepared, core.cursors, key)) return;
  if (key !== undefined && groups.join(operation, prepared, key)) return;
  operation.appliesBackpressure = !operation.droppable;
  operation.releaseSource = consumeSource(prepared, operation, counters);
}

/** Returns false if the operation has failed, because the cursor of the client is refused. */
function openCursors(
  operation: LiveOperation,
  prepared: PreparedOperation,
  settings: CursorSettings,
  key: ShareKey | undefined,
): boolean {
  const principal = key === undefined ? { user: settings.user(operation.contextValue) } : { share: key };
  const binding = identityOf(principal, { ...operation.params, query: prepared.source });
  const opened = OperationCursors.open(settings, binding, operation.cursorRequest);
  if (opened instanceof OperationCursors) {
    operation.cursors = opened;
    return true;
  }
  operation.fail([opened]);
  return false;
}
