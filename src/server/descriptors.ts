/**
 * Collects the property descriptors of a prototype chain up to `end` (exclusive), without constructors. The
 * nearest one wins.
 */
export function descriptorsUpTo(from: object, end: object | null): PropertyDescriptorMap {
  const members: PropertyDescriptorMap = {};
  for (let at: object | null = from; at !== null && at !== end; at = Object.getPrototypeOf(at)) {
    for (const name of Reflect.ownKeys(at)) {
      if (name === 'constructor' || Object.hasOwn(members, name)) continue;
      members[name] = Object.getOwnPropertyDescriptor(at, name) as PropertyDescriptor;
    }
  }
  return members;
}

/** Whether `ancestor` is on the prototype chain of a value. */
export function inherits(value: unknown, ancestor: object): value is object {
  return typeof value === 'object' && value !== null && Object.prototype.isPrototypeOf.call(ancestor, value);
}
