import type { ReadinessCheck } from '../../../types/health.ts';
import { debug } from '../../logging/debug.ts';

/** Milliseconds for which a result is used again, so that requests cannot overload the checked services. */
const MAX_AGE = 1000;

/** The checks of one server. */
export class Checks {
  readonly #checks: readonly (readonly [string, ReadinessCheck])[];
  readonly #timeout: number;
  #result: Promise<readonly string[]> | undefined;
  /** The time until which the result is used, by `performance.now()`; Infinity while the checks run. */
  #expires = 0;

  constructor(checks: Readonly<Record<string, ReadinessCheck>>, timeout: number) {
    this.#checks = Object.entries(checks);
    this.#timeout = timeout;
  }

  /** Resolves with the names of the checks that have failed. */
  failures(): Promise<readonly string[]> {
    if (this.#result === undefined || performance.now() > this.#expires) this.#result = this.#runAll();
    return this.#result;
  }

  async #runAll(): Promise<readonly string[]> {
    this.#expires = Number.POSITIVE_INFINITY;
    const names = await Promise.all(this.#checks.map((entry) => this.#run(entry)));
    this.#expires = performance.now() + MAX_AGE;
    return names.filter((name) => name !== undefined);
  }

  /** Resolves with the name of a check that fails. */
  async #run([name, check]: readonly [string, ReadinessCheck]): Promise<string | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const error = new Error(`no result after ${this.#timeout} ms`);
      timer = setTimeout(reject, this.#timeout, error).unref();
    });
    try {
      const passed = await Promise.race([call(check), late]);
      if (passed !== false) return undefined;
      debug.server('check %s returned false', name);
    } catch (error) {
      debug.server('check %s failed: %O', name, error);
    } finally {
      clearTimeout(timer);
    }
    return name;
  }
}

/** Calls a check; what it throws becomes a rejection. */
const call = async (check: ReadinessCheck): Promise<unknown> => check();
