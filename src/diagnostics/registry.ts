/** The number of owners at which those that were collected are removed: a handler per request creates many. */
const MIN_LIMIT = 64;

/** Values of parts of the package, such as caches and endpoints. It keeps no part alive. */
export class Registry<Value> {
  readonly #values = new WeakMap<object, Value>();
  #owners: WeakRef<object>[] = [];
  #limit = MIN_LIMIT;

  /** Registers the value of `owner`, which the value may reference. */
  add(owner: object, value: Value): void {
    this.#values.set(owner, value);
    this.#owners.push(new WeakRef(owner));
    if (this.#owners.length < this.#limit) return;
    this.#owners = this.#owners.filter((reference) => reference.deref() !== undefined);
    this.#limit = Math.max(MIN_LIMIT, 2 * this.#owners.length);
  }

  get values(): Value[] {
    const owners = this.#owners.flatMap((reference) => reference.deref() ?? []);
    return owners.flatMap((owner) => this.#values.get(owner) ?? []);
  }
}

/** A tool that agents may call over MCP. */
interface OfferedTool {
  readonly name: string;
  readonly description: string;
}

/** The use of a deprecated part of a schema by one client. */
export interface DeprecatedUse {
  /** Such as `User.email`. */
  readonly coordinate: string;
  readonly client: string;
  readonly count: number;
  /** Milliseconds since 1970. */
  readonly last: number;
}

type Read<Item> = () => readonly Item[];

/** The tools of the endpoints of MCP. */
export const offeredTools: Registry<Read<OfferedTool>> = new Registry();
/** The uses of deprecated parts that each handler has counted. */
export const deprecatedUses: Registry<Read<DeprecatedUse>> = new Registry();

/** Returns the items of all parts; undefined if there is no part. */
export function readAll<Item>({ values }: Registry<Read<Item>>): Item[] | undefined {
  return values.length === 0 ? undefined : values.flatMap((read) => read());
}
