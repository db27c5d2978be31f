import { after, type Behaviour, roll } from './behaviour.ts';
import { hash } from './choices.ts';

const typeOf = (value: unknown): string | undefined => (value as { $type?: string } | undefined)?.$type;

/** A `resolveType`, synchronous or not, that sometimes fails or returns a value that is not a name. */
export function typeName(now: () => Behaviour, late: boolean) {
  return (value: unknown): never => {
    const behaviour = now();
    const id = (value as { $id?: string }).$id ?? '?';
    const response = (): unknown => {
      const chance = roll(behaviour, id, 'resolveType');
      if (chance < behaviour.profile.fails) throw new Error(`no type for ${id}`);
      if (chance < behaviour.profile.fails + behaviour.profile.strange)
        return [undefined, null, 7, '', 'Node', behaviour.schema.getType('A'), {}][chance % 7];
      return typeOf(value);
    };
    return (late ? after(behaviour, hash(`type:${id}`, behaviour.seed) % 3, response) : response()) as never;
  };
}

/** An `isTypeOf`, synchronous or not, that sometimes fails. */
export function typeCheck(name: string, now: () => Behaviour, late: boolean) {
  return (value: unknown): boolean | Promise<boolean> => {
    const behaviour = now();
    const id = (value as { $id?: string }).$id ?? '?';
    const response = (): boolean => {
      const chance = roll(behaviour, id, `isTypeOf ${name}`);
      if (chance < behaviour.profile.fails / 2) throw new Error(`${name} does not know ${id}`);
      return typeOf(value) === name && chance >= behaviour.profile.fails;
    };
    if (!late) return response();
    const kind = hash(`is:${id}${name}`, behaviour.seed);
    // Some return synchronously, others a promise.
    return kind % 5 === 0 ? response() : (after(behaviour, kind % 3, response) as Promise<boolean>);
  };
}
