import type { ResponsePath } from 'graphql';
import type { IncrementalFormat } from '../../execution/types.ts';
import type { FieldError } from '../run/field-error.ts';
import { keysOf } from '../run/resolve-info.ts';
import type { Group, Part } from './delivery-groups.ts';
import type { PayloadWriter } from './work-queue.ts';

/** Formats errors as JSON text. */
type ErrorsText = (errors: readonly FieldError[]) => string;

/** Writes the payloads of one operation as JSON text. */
export interface PayloadText extends PayloadWriter {
  /** Returns the members of the first payload after `data`. */
  first(groups: readonly Group[]): string;
  /** Returns the payload of what was written since the last one; undefined if nothing was. */
  take(hasNext: boolean): string | undefined;
}

/** Creates the text of payloads in a format. */
export function createPayloadText(format: IncrementalFormat, errorsText: ErrorsText): PayloadText {
  return format === 'v0.2' ? new CurrentText(errorsText) : new LegacyText(errorsText);
}

/** The format since 2024: `pending` announces groups, `completed` ends them. */
class CurrentText implements PayloadText {
  #nextId = 0;
  #isEmpty = true;
  #pending: string[] = [];
  #incremental: string[] = [];
  #completed: { readonly id: string; readonly error: FieldError | undefined }[] = [];
  readonly #errorsText: ErrorsText;

  constructor(errorsText: ErrorsText) {
    this.#errorsText = errorsText;
  }

  first(groups: readonly Group[]): string {
    return `,"pending":[${groups.map((group) => this.#announce(group)).join()}],"hasNext":true`;
  }

  values(group: Group, parts: readonly Part[]): void {
    this.#isEmpty = false;
    for (const part of parts) {
      const { id, depth } = nearestGroup(group, part);
      const subPath = keysOf(part.path).slice(depth);
      const errors = part.errors === undefined ? '' : `,"errors":${this.#errorsText(part.errors)}`;
      const rest = subPath.length === 0 ? '' : `,"subPath":${JSON.stringify(subPath)}`;
      this.#incremental.push(`{"id":"${id}","data":${part.data}${errors}${rest}}`);
    }
  }

  success(group: Group, next: readonly Group[]): void {
    this.#complete(group, undefined);
    for (const each of next) this.#pending.push(this.#announce(each));
  }

  failure(group: Group, error: FieldError): void {
    this.#complete(group, error);
  }

  take(hasNext: boolean): string | undefined {
    if (this.#isEmpty && hasNext) return undefined;
    // Errors of parts are formatted, and reported, before the errors of groups.
    const completed = this.#completed.map(({ id, error }) => {
      const errors = error === undefined ? '' : `,"errors":${this.#errorsText([error])}`;
      return `{"id":"${id}"${errors}}`;
    });
    const text =
      `{"hasNext":${hasNext}` +
      member('pending', this.#pending) +
      member('incremental', this.#incremental) +
      `${member('completed', completed)}}`;
    this.#isEmpty = true;
    this.#pending = [];
    this.#incremental = [];
    this.#completed = [];
    return text;
  }

  #announce(group: Group): string {
    const id = String(this.#nextId++);
    group.id = id;
    return `{"id":"${id}","path":${pathText(group.path)}${labelText(group)}}`;
  }

  #complete(group: Group, error: FieldError | undefined): void {
    this.#isEmpty = false;
    this.#completed.push({ id: group.id ?? '', error });
    group.id = undefined;
  }
}

/** The announced group of a part with the longest path. */
function nearestGroup(group: Group, { groups }: Part): { id: string | undefined; depth: number } {
  let nearest = { id: group.id, depth: depthOf(group.path) };
  for (const other of groups) {
    if (other === group || other.id === undefined) continue;
    const depth = depthOf(other.path);
    if (depth > nearest.depth) nearest = { id: other.id, depth };
  }
  return nearest;
}

/** The format of 2022: every part has its path. */
class LegacyText implements PayloadText {
  #isEmpty = true;
  #incremental: string[] = [];
  readonly #errorsText: ErrorsText;

  constructor(errorsText: ErrorsText) {
    this.#errorsText = errorsText;
  }

  first(): string {
    return ',"hasNext":true';
  }

  values(group: Group, parts: readonly Part[]): void {
    for (const { data, errors } of parts) this.#add(group, data, errors);
  }

  success(): void {
    this.#isEmpty = false;
  }

  failure(group: Group, error: FieldError): void {
    this.#isEmpty = false;
    this.#add(group, 'null', [error]);
  }

  take(hasNext: boolean): string | undefined {
    if (this.#isEmpty && hasNext) return undefined;
    const text = `{"hasNext":${hasNext}${member('incremental', this.#incremental)}}`;
    this.#isEmpty = true;
    this.#incremental = [];
    return text;
  }

  #add(group: Group, data: string, errors: readonly FieldError[] | undefined): void {
    const errorsText = errors === undefined ? '' : `,"errors":${this.#errorsText(errors)}`;
    this.#incremental.push(`{"data":${data},"path":${pathText(group.path)}${errorsText}${labelText(group)}}`);
  }
}

const pathText = (path: ResponsePath | undefined): string => JSON.stringify(keysOf(path));

const labelText = ({ usage: { label } }: Group): string =>
  label === undefined ? '' : `,"label":${JSON.stringify(label)}`;

const member = (name: string, values: readonly string[]): string =>
  values.length === 0 ? '' : `,"${name}":[${values.join()}]`;

function depthOf(path: ResponsePath | undefined): number {
  let depth = 0;
  for (let at = path; at !== undefined; at = at.prev) depth++;
  return depth;
}
