import type { OperationCursors } from '../../cursors/operation-cursors.ts';

/** Decides when a group has to wait until its results are written before it executes further events. */
export interface GroupPacing {
  /** The number of bytes after which a group yields. */
  readonly burstBytes: number;
  /** True if so many messages are queued that producers should yield. */
  isBackpressured(): boolean;
  /** Writes the queued messages and yields to the event loop. */
  yield(): Promise<void>;
}

/** The parts of a group that its endpoint manages. */
export interface GroupServices {
  readonly pacing: GroupPacing;
  readonly cursors: OperationCursors | undefined;
  /** Called when all members have the result of an event, or when the position of the source is known. */
  onAdvanced(): void;
  /** Called when the group accepts no more members. */
  onEnded(): void;
}
