import {
  type DeferredPart,
  type DeferredParts,
  type DeliveryGroup,
  GROUP_ANNOUNCED,
  GROUP_CLOSED,
  GROUP_OPEN,
  GROUP_REGISTERED,
} from '../run/deferred-parts.ts';
import type { Execution } from '../run/execution.ts';

export type Group = DeliveryGroup<Execution>;
export type Part = DeferredPart<Execution>;
export type Found = DeferredParts<Execution>;

/** Whether a group has still to be delivered. */
export const isOpen = ({ state }: Group): boolean => state === GROUP_OPEN || state === GROUP_ANNOUNCED;

/**
 * Opens a group whose parent is open. The parent may come later in the list of groups. Groups without a
 * parent are added to `roots`.
 */
export function openGroup(group: Group, roots: Group[]): void {
  if (group.state !== GROUP_REGISTERED) return;
  const { parent } = group;
  if (parent === undefined) roots.push(group);
  else {
    openGroup(parent, roots);
    if (!isOpen(parent)) {
      group.state = GROUP_CLOSED;
      return;
    }
    parent.children.push(group);
  }
  group.state = GROUP_OPEN;
}

/** Returns the groups that have parts, with the groups below those that have none. */
export function withoutEmpty(groups: readonly Group[], filled: Group[]): Group[] {
  for (const group of groups) {
    if (group.state !== GROUP_OPEN) continue;
    if (group.parts.size > 0) filled.push(group);
    else {
      group.state = GROUP_CLOSED;
      withoutEmpty(group.children, filled);
    }
  }
  return filled;
}
